"""The tasks of this process: at most so many runs at once, taken oldest first."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import DatabaseError

from agents.events import Fence, hub
from agents.events.wake import waker
from agents.executor import lease
from agents.executor.drive import drive
from agents.loop import Lost
from agents.loop.crash import fail_run
from lettaweb.lib.db import in_db

T = TypeVar("T")
LOOK = 1.0  # seconds between two looks for runs without an owner
log = structlog.get_logger(__name__)


class Pool:
    """Runs of this process, touched only on its event loop."""

    def __init__(self) -> None:
        self.tasks: dict[int, tuple[Fence, asyncio.Task[None]]] = {}
        self.reserved = 0
        self.draining = False
        self._heart: lease.Heart | None = None
        self._look: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, kind: str = "web") -> None:
        """Join the processes that execute runs."""
        self.draining = False
        self._wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        waker.on_runs = self._heard
        waker.on_cancelled = self._cancelled
        waker.start(loop)
        await in_db(lease.enter, kind)
        self._loop = loop
        self._heart = lease.Heart(self._heart_stopped)
        self._heart.start()
        self._look = loop.create_task(self._look_for_work())

    async def drain(self, seconds: float) -> None:
        """Take no new runs, let those in flight finish for ``seconds``, hand the others over."""
        self.draining = True
        tasks = [task for _, task in self.tasks.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        await self.stop()

    async def stop(self) -> None:
        """Stop at once; what is in flight is free for others."""
        self.draining = True
        left = list(self.tasks.values())
        for _, task in left:
            task.cancel()
        await asyncio.gather(*(task for _, task in left), return_exceptions=True)
        if self._look is not None:
            self._look.cancel()
        if self._heart is not None:
            self._heart.end()
        waker.stop()
        self._loop = None
        await in_db(lease.leave)

    # --- slots ---

    @property
    def free(self) -> int:
        if self.draining:
            return 0
        return int(settings.LETTAWEB_MAX_RUNS) - len(self.tasks) - self.reserved

    def reserve(self) -> uuid.UUID | None:
        """A slot for a run that is about to be created: its owner's id, None when it must wait its turn."""
        if self.free <= 0:
            return None
        self.reserved += 1
        return lease.process_id()

    def unreserve(self) -> None:
        self.reserved -= 1

    def adopt(self, fence: Fence) -> None:
        """Start the task of a run that is ours already."""
        hub.own(fence.run_id)
        task = asyncio.get_running_loop().create_task(self._drive(fence), name=f"run-{fence.run_id}")
        self.tasks[fence.run_id] = (fence, task)

    # --- work ---

    async def _drive(self, fence: Fence) -> None:
        try:
            await drive(fence)
        except Lost:
            log.info("run_not_ours", run=fence.run_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(fence))
        except DatabaseError as error:
            log.warning("run_waits_for_database", run=fence.run_id, error=str(error)[:200])
            await self._give_back(fence)
        except Exception:
            log.exception("run_failed", run=fence.run_id)
            await self._quietly(in_db(fail_run, fence))
        finally:
            was_full = self.free <= 0
            self.tasks.pop(fence.run_id, None)
            hub.disown(fence.run_id)
            if was_full:
                self._wake.set()

    async def _give_back(self, fence: Fence) -> None:
        await self._quietly(in_db(lease.release, fence))

    async def _quietly(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it if the database lets us; the lease does the rest if not."""
        try:
            await work
        except DatabaseError as error:
            log.warning("database_away", error=str(error)[:200])

    def _heard(self, run_id: int) -> None:
        """A run was created, ended or taken by somebody."""
        self._wake.set()

    def _cancelled(self, run_id: int) -> None:
        """A run that may be ours was cancelled in this process: its task stops at once."""
        held = self.tasks.get(run_id)
        if held is not None:
            held[1].cancel()

    def _heart_stopped(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped_beating)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` on the event loop of this process for a caller in another thread; its result."""
        if self._loop is None:
            return asyncio.run(work)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stopped_beating(self) -> None:
        """Others may hold us for dead: whatever runs here stops, before they take it over."""
        log.error("lease_lost", runs=len(self.tasks))
        for _, task in list(self.tasks.values()):
            task.cancel()
        asyncio.get_running_loop().create_task(self._rejoin())

    async def _rejoin(self) -> None:
        await self._quietly(in_db(_reenter))

    async def _look_for_work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look_once()
            except DatabaseError as error:
                log.warning("cannot_look_for_runs", error=str(error)[:200])
            except Exception:
                log.exception("look_for_runs")
            try:
                await asyncio.wait_for(self._wake.wait(), LOOK)
            except TimeoutError:
                continue

    async def _look_once(self) -> None:
        await in_db(lease.bury)
        for fence in await in_db(lease.lost, [fence for fence, _ in self.tasks.values()]):
            held = self.tasks.get(fence.run_id)
            if held is not None and held[0] == fence:
                held[1].cancel()
        if self.free > 0:
            for fence in await in_db(lease.claim, self.free):
                self.adopt(fence)


def _reenter() -> None:
    if not lease.beat():
        lease.leave()
        lease.enter("web")


pool = Pool()
