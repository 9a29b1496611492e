"""Joins the processes that execute runs: beats, looks for work, and lets go of what is not ours any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

import structlog
from django.conf import settings

from agents.events import Fence
from agents.events.wake import waker
from agents.executor import lease, process
from agents.executor.pool import pool
from lettaweb.lib.db import in_db, in_db_read
from lettaweb.lib.transient import ERRORS

LOOK = 1.0  # seconds between two looks around
FEEL = 0.5  # seconds between two looks at the heart
STRAY = 5.0  # seconds that a run may be ours without being driven
AT_ONCE = 20  # runs that are taken in one go on the database threads
T = TypeVar("T")
log = structlog.get_logger(__name__)


class Watch:
    """The tasks beside the runs. One for a process."""

    def __init__(self) -> None:
        self._heart: process.Heart | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._alone: dict[Fence, float] = {}

    async def start(self, kind: str = "web") -> None:
        """Join the processes that execute runs."""
        loop = asyncio.get_running_loop()
        pool.open()
        waker.start(loop)
        await in_db(process.enter, kind)
        self._heart = process.Heart(lambda: loop.call_soon_threadsafe(pool.wake.set))
        self._heart.start()
        self._tasks = [loop.create_task(self._look_for_work()), loop.create_task(self._feel(self._heart))]

    async def drain(self, seconds: float) -> None:
        """Take no new runs, let those in flight finish for ``seconds``, hand the others over, leave."""
        await pool.drain(seconds)
        await self.stop()

    async def stop(self) -> None:
        """Stop at once; what is in flight is free for others."""
        pool.draining = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await pool.close()
        waker.stop()
        if self._heart is not None:
            await asyncio.to_thread(self._heart.end)
        await _tried("leave", in_db(process.leave))

    async def _feel(self, heart: process.Heart) -> None:
        """A process that could not beat for two thirds of the lease ends its tools itself."""
        while True:
            await asyncio.sleep(FEEL)
            if heart.silent > settings.LETTAWEB_LEASE_SECONDS * 2 / 3 and pool.acting:
                log.error("lease_lost", runs=len(pool.held), silent=round(heart.silent, 1))
                pool.drop_calls()

    async def _look_for_work(self) -> None:
        while True:
            pool.wake.clear()
            held = {run_id: one.fence for run_id, one in pool.held.items()}
            sight = await _tried("look", in_db_read(lease.look))
            if sight is not None:
                await self._act_on(sight, held)
            try:
                await asyncio.wait_for(pool.wake.wait(), LOOK)
            except TimeoutError:
                continue

    async def _act_on(self, sight: lease.Sight, held: Mapping[int, Fence]) -> None:
        """``held``: the runs that were driven here when the look began."""
        for run_id, fence in held.items():
            if sight.mine.get(run_id) != fence:
                pool.drop(fence)
        for run_id in sight.late:
            pool.hurry(run_id)
        await self._take([*self._strays(sight), *sight.free])
        if sight.gone:
            await _tried("bury", in_db(lease.bury, sight.gone))

    def _strays(self, sight: lease.Sight) -> list[lease.Free]:
        """Runs that have been ours for a while without a task that drives them: who was to start it is gone."""
        now = time.monotonic()
        alone = [fence for run_id, fence in sight.mine.items() if run_id not in pool.held]
        self._alone = {fence: self._alone.get(fence, now) for fence in alone}
        long = [fence for fence, since in self._alone.items() if now - since > STRAY]
        return [lease.Free(fence.run_id, fence.epoch, process.process_id()) for fence in long]

    async def _take(self, free: Sequence[lease.Free]) -> None:
        """Take what there are slots for, oldest first."""
        while free and pool.free > 0:
            some, free = free[: min(AT_ONCE, pool.free)], free[min(AT_ONCE, pool.free) :]
            for fence in await _tried("claim", in_db(_claim, some)) or ():
                pool.adopt(fence)
        pool.queue = bool(free)


def _claim(free: Sequence[lease.Free]) -> list[Fence]:
    return list(lease.claim(free))


async def _tried(what: str, work: Awaitable[T]) -> T | None:
    """The result of ``work``; None when it failed. The next look is soon, and other parts of this one go on."""
    try:
        return await work
    except ERRORS as error:
        log.warning("database_away", while_=what, error=str(error)[:200])
    except Exception:
        log.exception("watch_failed", while_=what)
    return None


watch = Watch()
