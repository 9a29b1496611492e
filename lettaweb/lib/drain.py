"""Whether this process is about to stop: no new runs, streams tell their readers to come back."""

from __future__ import annotations

import asyncio
import os
import select
import time

_waiters: set[asyncio.Event] = set()
_draining = False
_shared: tuple[int, int] | None = None  # a pipe: what is written there stays, so that every process sees it


def draining() -> bool:
    return _draining or (_shared is not None and _readable(_shared[0], 0))


def share() -> None:
    """Processes that this one forks from now on drain with it.

    No ``multiprocessing.Event``: setting one waits for everybody who waits for it, also for who was killed meanwhile.
    """
    global _shared
    _shared = os.pipe()


def _readable(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def rest(seconds: float) -> bool:
    """Sleep, but not into a drain; whether it has begun. For threads, not for the event loop."""
    if _shared is None:
        time.sleep(seconds)
    else:
        _readable(_shared[0], seconds)
    return draining()


def begin() -> None:
    """Start to drain; call it on the event loop, where there is one. It cannot be taken back."""
    global _draining
    _draining = True
    if _shared is not None:
        os.write(_shared[1], b"!")
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
