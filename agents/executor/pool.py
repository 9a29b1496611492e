"""The runs of this process: at most so many at once, taken oldest first."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from django.conf import settings

from agents.events import Fence, hub
from agents.events.wake import waker
from agents.executor import lease, process
from agents.executor.drive import drive
from agents.executor.storing import Wish
from agents.loop import Advanced, Lost
from agents.loop.crash import TOO_LATE, fail_run
from lettaweb.lib.db import in_db
from lettaweb.lib.transient import ERRORS, passes

T = TypeVar("T")
FREELY = 0.5  # of the time that a drain has: then runs leave at their next verb
log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Held:
    """A run that this process drives. ``late``: it has to end, it took too long."""

    fence: Fence
    task: asyncio.Task[None]
    wish: Wish = field(default_factory=Wish)
    late: bool = False


class Pool:
    """Runs of this process, touched only on its event loop."""

    def __init__(self) -> None:
        self.held: dict[int, Held] = {}
        self.reserved = 0
        self.draining = False
        self.queue = False  # runs wait for a slot: new ones stand behind them
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self.wake = asyncio.Event()

    def open(self) -> None:
        """Begin on the running loop."""
        self.draining, self.queue, self.reserved = False, False, 0
        self._loop, self._ended, self.wake = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        waker.on_runs = self._heard
        waker.on_cancelled = self._cancelled

    async def drain(self, seconds: float) -> None:
        """Take no new runs; those in flight end, or leave at the next verb, within ``seconds``."""
        self.draining = True
        await self._wait_until_empty(seconds * FREELY)
        for held in self.held.values():
            held.wish.leave = True
        await self._wait_until_empty(seconds * (1 - FREELY))

    async def _wait_until_empty(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while self.held or self.reserved:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            self._ended.clear()
            try:
                await asyncio.wait_for(self._ended.wait(), left)
            except TimeoutError:
                return

    async def close(self) -> None:
        """Stop at once; what is in flight is given back."""
        self.draining = True
        left = [held.task for held in self.held.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._loop = None

    # --- slots ---

    @property
    def free(self) -> int:
        if self.draining:
            return 0
        return int(settings.LETTAWEB_MAX_RUNS) - len(self.held) - self.reserved

    def reserve(self) -> uuid.UUID | None:
        """A slot for a run that is about to be created: its owner's id, None when it must wait its turn."""
        if self.queue or self.free <= 0 or not process.known():
            self.queue = True
            return None
        self.reserved += 1
        return process.process_id()

    def unreserve(self) -> None:
        self.reserved -= 1
        self._ended.set()

    def adopt(self, fence: Fence, first: Advanced | None = None) -> None:
        """Start the task of a run that is ours already. ``first``: what comes first, where that was looked at."""
        known = self.held.get(fence.run_id)
        if known is not None and known.fence.epoch >= fence.epoch:
            return
        hub.own(fence.run_id, 0 if fence.epoch == 1 else None)
        wish = Wish()
        task = asyncio.get_running_loop().create_task(self._drive(fence, wish, first), name=f"run-{fence.run_id}")
        held = self.held[fence.run_id] = Held(fence, task, wish)
        task.add_done_callback(lambda _: self._forget(held))

    # --- work ---

    async def _drive(self, fence: Fence, wish: Wish, first: Advanced | None) -> None:
        ended = False
        try:
            ended = await drive(fence, wish, first)
        except Lost:
            log.info("run_not_ours", run=fence.run_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._fail_late(fence))
        except Exception as error:
            if passes(error):
                log.warning("run_given_back", run=fence.run_id, error=str(error)[:200])
            else:
                log.exception("run_failed", run=fence.run_id)
                await self._quietly(in_db(fail_run, fence))
        finally:
            if not ended:
                # Whatever happened: a run that is still ours must not stay without a task.
                await asyncio.shield(self._quietly(in_db(lease.release, fence)))

    async def _fail_late(self, fence: Fence) -> None:
        held = self.held.get(fence.run_id)
        if held is not None and held.late:
            await self._quietly(in_db(fail_run, fence, TOO_LATE))

    def _forget(self, held: Held) -> None:
        if self.held.get(held.fence.run_id) is held:
            del self.held[held.fence.run_id]
            hub.disown(held.fence.run_id)
        self._ended.set()
        if self.queue:
            self.wake.set()

    async def _quietly(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it if the database lets us; the lease does the rest if not."""
        try:
            await work
        except ERRORS as error:
            log.warning("database_away", error=str(error)[:200])

    def _heard(self, run_id: int) -> None:
        """A run was created, ended or taken by somebody."""
        self.wake.set()

    def _cancelled(self, run_id: int) -> None:
        """A run that may be ours was cancelled in this process: its task stops at once."""
        held = self.held.get(run_id)
        if held is not None:
            held.task.cancel()

    def drop(self, fence: Fence) -> None:
        """The run is not ours any more: its task stops."""
        held = self.held.get(fence.run_id)
        if held is not None and held.fence == fence:
            held.task.cancel()

    @property
    def acting(self) -> bool:
        """Whether tools work here."""
        return any(held.wish.calls for held in self.held.values())

    def drop_calls(self) -> None:
        """Others may hold us for dead: tools that work here stop, before others say that their outcome is unknown.

        Everything else goes on: whatever it writes is fenced.
        """
        for held in self.held.values():
            for call in held.wish.calls:
                call.cancel()

    def hurry(self, run_id: int) -> None:
        """The run takes too long: it ends as failed."""
        held = self.held.get(run_id)
        if held is not None and not held.late:
            held.late = True
            held.task.cancel()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` on the event loop of this process for a caller in another thread; its result."""
        if self._loop is None:
            return asyncio.run(work)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


pool = Pool()
