"""Whether this process is about to stop: no new runs, streams tell their readers to come back."""

from __future__ import annotations

import asyncio

_waiters: set[asyncio.Event] = set()
_draining = False


def draining() -> bool:
    return _draining


def begin() -> None:
    """Start to drain; call it on the event loop. It cannot be taken back."""
    global _draining
    _draining = True
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
