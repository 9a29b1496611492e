"""A wake-up for one waiter, at a fraction of what :class:`asyncio.Event` costs."""

from __future__ import annotations

import asyncio


class Bell:
    """Once rung it stays rung until it is cleared; touched only on its waiter's event loop."""

    __slots__ = ("_waiter", "rung")

    def __init__(self) -> None:
        self.rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self.rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        self.rung = False

    async def wait(self) -> None:
        """Return once it is rung."""
        while not self.rung:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
