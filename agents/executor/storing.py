"""Bring what was done into the database: again and again while that is away, since nothing must be lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from agents.events import Fence, hub
from lettaweb.lib.db import in_db
from lettaweb.lib.transient import ERRORS, FIRST_PAUSE, LONGEST_PAUSE, passes

T = TypeVar("T")
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Wish:
    """What the pool wants of a drive, and what it must know of it.

    ``leave``: stop before the next verb. ``calls``: the tools that work for it right now.
    """

    leave: bool = False
    calls: Sequence[asyncio.Task[Any]] = ()


async def stored(fence: Fence, work: Callable[[], T]) -> T:
    """The result of ``work``, a fenced transaction that may be done twice. Errors that do not pass are raised."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await in_db(work)
        except ERRORS as error:
            if not passes(error):
                raise
            log.warning("run_waits_for_database", run=fence.run_id, error=str(error)[:200])
        hub.doubt(fence.run_id)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
