"""One cycle of the poll: its time, its lease and the event loop on which it asks providers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents import providers
from batches.models import LLMBatch
from batches.poll.lease import Held
from lettaweb.lib import collector, drain

T = TypeVar("T")

LONGEST_PAUSE = 600.0  # seconds between two attempts at what keeps failing


@dataclass
class Cycle:
    """``seconds``: how long work may begin. ``act_seconds``: how long tools may be started: each may take its
    timeout, and a task of the queue is killed after a minute. ``by_hand``: waits for nothing that is due later.
    """

    lease: Held
    seconds: float = 45.0
    act_seconds: float = 25.0
    by_hand: bool = False
    began: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=timezone.now)
    _runner: asyncio.Runner | None = None

    def __enter__(self) -> Cycle:
        collector.spare()
        self._runner = asyncio.Runner()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._runner is not None
        self._runner.run(providers.close_all())
        self._runner.close()

    def wait(self, asked: Coroutine[Any, Any, T]) -> T:
        """What a provider answers; never inside a transaction."""
        assert self._runner is not None
        return self._runner.run(asked)

    @property
    def over(self) -> bool:
        """Whether no more work may begin; raises when somebody else polls now."""
        self.lease.check()
        return drain.draining() or time.monotonic() - self.began > self.seconds

    @property
    def may_act(self) -> bool:
        return not self.over and (self.by_hand or time.monotonic() - self.began < self.act_seconds)

    def due(self, rows: QuerySet[LLMBatch]) -> QuerySet[LLMBatch]:
        """Those of ``rows`` that are to be dealt with now; what was put off in this cycle is not."""
        due = Q(next_at=None) | Q(next_at__lte=timezone.now())
        if self.by_hand:
            due |= Q(updated_at__lt=self.started_at)
        return rows.filter(due).order_by("id")


def poll_again_at() -> datetime:
    """When a provider is asked again: all batches of a minute not at the same moment."""
    seconds = float(settings.LETTAWEB_BATCH_POLL_SECONDS)
    return timezone.now() + timedelta(seconds=seconds * random.uniform(0.85, 1.0))  # noqa: S311  no secret


def later(llm: LLMBatch, retry_after: float | None = None) -> datetime:
    """When to try again after ``llm.troubles`` failures in a row."""
    pause = min(5.0 * 2.0 ** min(llm.troubles, 10), LONGEST_PAUSE)
    return timezone.now() + timedelta(seconds=max(pause, retry_after or 0.0))
