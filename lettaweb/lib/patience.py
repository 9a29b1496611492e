"""A limit to each of many waits, without a timer for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Patience:
    """What :func:`asyncio.timeout` does, for one wait after another; a context that ends with the last.

    One timer serves them all: it looks when the present wait began, and is set again when it rang too early.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._since = 0.0
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def for_(self, coming: Awaitable[T]) -> T:
        """The result of ``coming``; raises TimeoutError when it takes too long."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting, self._since, self._over = task, self._loop.time(), False
        before, cancelled = task.cancelling(), False
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._ring)
        try:
            return await coming
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            self._waiting = None
            # Whatever came of our cancellation, it is taken back; one from outside stays.
            if self._over and task.uncancel() <= before and cancelled:
                raise TimeoutError from None

    def _ring(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        left = self._since + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._ring)
        else:
            self._over = True
            self._waiting.cancel()
