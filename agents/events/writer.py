"""Commits what all runs of this process have said: one transaction for all, at once when idle.

The writer lives on the event loop; the transaction runs on the database threads. A run whose row is not
written any more (its epoch changed) is reported through its ``Stream.lost``.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import structlog
from django.db import DatabaseError, transaction

from agents.events.hub import hub
from agents.events.kinds import Batch, Event, StepHead
from agents.events.log import Fence, insert_deltas
from lettaweb.lib.db import in_db

TICK = 0.02  # seconds between two commits
TICK_BUSY = 0.05  # the same with more than BUSY streams
BUSY = 100
log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Stream:
    """The deltas of one open answer: what is queued, what has committed, and where the log stands."""

    fence: Fence
    head: StepHead
    last: int
    queued: list[Event] = field(default_factory=list)
    committed: list[Event] = field(default_factory=list)
    flying: asyncio.Future[None] | None = None
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def written(self) -> Batch | None:
        """What has committed of it, as one batch."""
        if not self.committed:
            return None
        return Batch(self.last - len(self.committed) + 1, self.committed, self.head)


class DeltaWriter:
    """Queues deltas of the streams of this process and commits them together."""

    def __init__(self) -> None:
        self._waiting: dict[Stream, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._last_commit = 0.0
        self.open_streams = 0

    def add(self, stream: Stream, event: Event) -> None:
        stream.queued.append(event)
        self._waiting[stream] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def take(self, stream: Stream) -> list[Event]:
        """What is queued of ``stream`` and will not be written any more by the writer."""
        self._waiting.pop(stream, None)
        while stream.flying is not None:
            await asyncio.shield(stream.flying)
        queued, stream.queued = stream.queued, []
        self._waiting.pop(stream, None)
        return queued

    async def _work(self) -> None:
        while self._waiting:
            tick = TICK_BUSY if self.open_streams > BUSY else TICK
            wait = self._last_commit + tick - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            self._last_commit = time.monotonic()
            await self._commit()

    async def _commit(self) -> None:
        streams, self._waiting = list(self._waiting), {}
        done = asyncio.get_running_loop().create_future()
        batches: list[tuple[Stream, Batch]] = []
        for stream in streams:
            if stream.queued:
                batches.append((stream, Batch(stream.last + 1, stream.queued, stream.head)))
                stream.queued, stream.flying = [], done
        try:
            written = await in_db(_write, [(stream.fence, batch) for stream, batch in batches])
            for (stream, batch), ok in zip(batches, written, strict=True):
                self._committed(stream, batch, ok)
        except DatabaseError as error:
            log.warning("deltas_not_stored", error=str(error)[:200], runs=len(batches))
            for stream, batch in batches:
                stream.queued = [*batch.events, *stream.queued]
                self._waiting[stream] = None
        finally:
            for stream, _ in batches:
                stream.flying = None
            done.set_result(None)

    def _committed(self, stream: Stream, batch: Batch, ok: bool) -> None:
        if not ok:
            stream.lost.set()
            return
        stream.last = batch.last
        stream.committed.extend(batch.events)
        hub.publish(stream.fence.run_id, batch)


def _write(batches: list[tuple[Fence, Batch]]) -> list[bool]:
    with transaction.atomic():
        return [insert_deltas(fence, batch) for fence, batch in batches]


writer = DeltaWriter()
