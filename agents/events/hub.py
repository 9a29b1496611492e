"""Tell readers in this process what has committed. Nothing here is the truth; the log is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

from django.conf import settings

from agents.events.kinds import Batch, bearable
from lettaweb.lib.bell import Bell

LOOK_AGAIN = 1.0  # seconds; readers look by themselves, too: wake-ups may get lost
KEEP = 256  # events of a run that stay in memory for readers that are close behind


@dataclass(slots=True, eq=False)
class Watch:
    """One reader of one run: something may be new, or a while has passed."""

    changed: Bell = field(default_factory=Bell)


@dataclass(slots=True)
class Tail:
    """The last committed events of a run that this process executes or reads.

    ``last``: the number of the run's last event; None where only the log knows it.
    """

    batches: deque[Batch] = field(default_factory=deque)
    size: int = 0
    watches: set[Watch] = field(default_factory=set)
    owned: bool = False
    last: int | None = None

    def add(self, batch: Batch) -> None:
        if self.last is not None and self.last + 1 != batch.first:
            self.forget()
        self.batches.append(batch)
        self.last = batch.last
        self.size += len(batch.events)
        while self.size > KEEP and len(self.batches) > 1:
            self.size -= len(self.batches.popleft().events)

    def forget(self) -> None:
        self.batches.clear()
        self.size, self.last = 0, None

    def beyond(self, cursor: int) -> list[Batch] | None:
        """The next batches beyond ``cursor``, as much as is bearable; None when they are not (all) here."""
        if self.last is None or (self.batches[0].first if self.batches else self.last + 1) > cursor + 1:
            return None
        if self.batches and self.batches[-1].first == cursor + 1:  # the usual case: a reader that keeps up
            return bearable([self.batches[-1]])[0]
        beyond = list(takewhile(lambda batch: batch.last > cursor, reversed(self.batches)))
        return bearable(batch.after(cursor) for batch in reversed(beyond))[0]


class Hub:
    """The tails of this process, touched only on its event loop."""

    def __init__(self) -> None:
        self.tails: dict[int, Tail] = {}
        self._belt: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def publish(self, run_id: int, batch: Batch) -> None:
        """``batch`` of ``run_id`` has committed."""
        tail = self.tails.get(run_id)
        if tail is None or not batch.events:
            return
        tail.add(batch)
        self.wake(run_id)

    def doubt(self, run_id: int) -> None:
        """More may have committed than was published: readers look into the log."""
        tail = self.tails.get(run_id)
        if tail is not None:
            tail.forget()
            self.wake(run_id)

    def wake(self, run_id: int) -> None:
        """The readers of ``run_id`` look again."""
        tail = self.tails.get(run_id)
        for watch in tail.watches if tail else ():
            watch.changed.ring()

    def own(self, run_id: int, last: int | None) -> None:
        """This process executes ``run_id`` from now on: what it publishes beyond ``last`` is all there is."""
        tail = self.tails.setdefault(run_id, Tail())
        tail.owned = True
        if tail.last is None:
            tail.last = last

    def disown(self, run_id: int) -> None:
        tail = self.tails.get(run_id)
        if tail is not None:
            tail.owned = False
            self.wake(run_id)
            self._forget(run_id, tail)

    @contextmanager
    def watch(self, run_id: int) -> Iterator[tuple[Tail, Watch]]:
        tail, watch = self.tails.setdefault(run_id, Tail()), Watch()
        tail.watches.add(watch)
        self._look_again_soon()
        try:
            yield tail, watch
        finally:
            tail.watches.discard(watch)
            self._forget(run_id, tail)

    def _look_again_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._belt is None or self._belt[0] is not loop:
            self._belt = loop, loop.call_later(min(LOOK_AGAIN, settings.LETTAWEB_PING_SECONDS), self._look_again)

    def _look_again(self) -> None:
        """One timer for all readers: one for each would cost as much as what they read."""
        self._belt = None
        read = [run_id for run_id, tail in self.tails.items() if tail.watches]
        for run_id in read:
            self.wake(run_id)
        if read:
            self._look_again_soon()

    def foreign(self) -> list[int]:
        """Runs that somebody reads here and nobody executes here."""
        return [run_id for run_id, tail in self.tails.items() if tail.watches and not tail.owned]

    def _forget(self, run_id: int, tail: Tail) -> None:
        if not tail.watches and not tail.owned and self.tails.get(run_id) is tail:
            del self.tails[run_id]


hub = Hub()
