"""Commits what all runs of this process have said: one transaction for all, at once when idle.

The writer lives on the event loop; the transaction runs on the database threads. A run whose row is not
written any more (its epoch changed) is reported through its ``Stream.lost``. While the database is away what
was said waits here, and so do its speakers: each says more only after what it said has committed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from django.db import transaction

from agents.events.hub import hub
from agents.events.kinds import Batch, Event, StepHead, decode_all, encode
from agents.events.log import Fence, insert_deltas
from lettaweb.lib.bell import Bell
from lettaweb.lib.db import in_db
from lettaweb.lib.faults import reach
from lettaweb.lib.transient import passes

TICK, LONGEST_TICK = 0.005, 0.08  # seconds between two commits
FOR_EACH_STREAM = 0.0005  # seconds by which an open stream puts commits apart: the more there are, the more each holds
LONGEST_PAUSE = 1.0  # seconds between two tries while the database is away
log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Stream:
    """The deltas of one open answer: what is queued, what has committed (as the log has it), and where the log stands.

    ``flying`` is on its way into the log, or was when the database went away: then it goes again as it was.
    ``lost``: nothing more of it will be written, because of ``error`` or because the run is not ours any more.
    """

    fence: Fence
    head: StepHead
    last: int
    queued: list[Event] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)  # texts: the collector has nothing to look at
    flying: Batch | None = None
    moved: Bell = field(default_factory=Bell)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None

    @property
    def written(self) -> Batch | None:
        """What has committed of it, as one batch."""
        if not self.committed:
            return None
        events = decode_all(self.committed)
        return Batch(self.last - len(events) + 1, events, self.head)

    def take_off(self) -> Batch | None:
        """The batch that is to be written next."""
        if self.flying is None and self.queued:
            self.flying, self.queued = Batch(self.last + 1, self.queued, self.head), []
        return self.flying

    def land(self, batch: Batch) -> None:
        self.last, self.flying = batch.last, None
        self.committed.append(batch.data)
        self.moved.ring()

    def lose(self, error: Exception | None = None) -> None:
        self.flying, self.error = None, error
        self.lost.set()
        self.moved.ring()


class DeltaWriter:
    """Queues deltas of the streams of this process and commits them together."""

    def __init__(self) -> None:
        self._waiting: dict[Stream, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._last_commit = 0.0
        self._failures = 0
        self.open_streams = 0

    def add(self, stream: Stream, events: Sequence[Event]) -> None:
        if events:
            stream.queued.extend(events)
            self._wait(stream)

    async def written(self, stream: Stream) -> None:
        """Return when all of ``stream`` has committed, or when it is lost."""
        while (stream.queued or stream.flying is not None) and not stream.lost.is_set():
            stream.moved.clear()
            await stream.moved.wait()

    async def take(self, stream: Stream) -> list[Event]:
        """What is queued of ``stream`` and will not be written any more by the writer."""
        while stream.flying is not None:
            stream.moved.clear()
            await stream.moved.wait()
        self._waiting.pop(stream, None)
        queued, stream.queued = stream.queued, []
        return queued

    def _wait(self, stream: Stream) -> None:
        self._waiting[stream] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            wait = self._last_commit + self._pause() - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            self._last_commit = time.monotonic()
            streams, self._waiting = list(self._waiting), {}
            await self._commit([(one, batch) for one in streams if (batch := one.take_off()) is not None])

    def _pause(self) -> float:
        tick = min(max(TICK, FOR_EACH_STREAM * self.open_streams), LONGEST_TICK)
        return min(tick * 2.0**self._failures, LONGEST_PAUSE)

    async def _commit(self, batches: Sequence[tuple[Stream, Batch]]) -> None:
        try:
            written = await in_db(_write, [(stream.fence, batch) for stream, batch in batches])
        except Exception as error:
            await self._failed(batches, error)
            return
        self._failures = 0
        for (stream, _), batch in zip(batches, written, strict=True):
            if batch is None:
                stream.lose()
                continue
            stream.land(batch)
            hub.publish(stream.fence.run_id, batch)
            if stream.queued:
                self._wait(stream)

    async def _failed(self, batches: Sequence[tuple[Stream, Batch]], error: Exception) -> None:
        """The database is away: try again. A mistake: find out whose, so that nobody else has to suffer."""
        if passes(error):
            self._failures = min(self._failures + 1, 10)
            log.warning("deltas_not_stored", error=str(error)[:200], runs=len(batches))
            self._waiting.update(dict.fromkeys(stream for stream, _ in batches))
        elif len(batches) == 1:
            batches[0][0].lose(error)
        else:
            for one in batches:
                await self._commit([one])


def _write(batches: list[tuple[Fence, Batch]]) -> list[Batch | None]:
    """The batches as they were written; None for each whose run is no longer ours."""
    told = [(fence, Batch(batch.first, batch.events, batch.head, encode(batch.events))) for fence, batch in batches]
    with transaction.atomic():
        written = insert_deltas(told)
        reach("flush")
    reach("flushed")
    return [batch if ours else None for (_, batch), ours in zip(told, written, strict=True)]


writer = DeltaWriter()
