"""Whether this process is about to stop: no new runs, streams tell their readers to come back."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.synchronize import Event

_waiters: set[asyncio.Event] = set()
_draining = False
_shared: Event | None = None


def draining() -> bool:
    return _draining or (_shared is not None and _shared.is_set())


def share() -> None:
    """Processes that this one forks from now on drain with it."""
    global _shared
    _shared = multiprocessing.Event()


def rest(seconds: float) -> bool:
    """Sleep, but not into a drain; whether it has begun. For threads, not for the event loop."""
    if _shared is None:
        time.sleep(seconds)
    else:
        _shared.wait(seconds)
    return draining()


def begin() -> None:
    """Start to drain; call it on the event loop, where there is one. It cannot be taken back."""
    global _draining
    _draining = True
    if _shared is not None:
        _shared.set()
    for waiter in _waiters:
        waiter.set()


async def wait() -> None:
    """Return when the process starts to drain."""
    if _draining:
        return
    waiter = asyncio.Event()
    _waiters.add(waiter)
    try:
        await waiter.wait()
    finally:
        _waiters.discard(waiter)
