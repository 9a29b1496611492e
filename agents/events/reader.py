"""One cursor over a run: replay and live in one stream, nothing twice, nothing missing."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator

from agents.events.hub import Tail, hub
from agents.events.kinds import Batch, is_terminal
from agents.events.log import last_seq, look, page, whole
from agents.events.wake import waker
from agents.models import Run
from lettaweb.lib.db import in_db_read
from lettaweb.lib.transient import ERRORS, passes

PATIENCE = 60.0  # seconds that readers wait for a database that is away


class LogGone(Exception):
    """The run's log was removed by retention."""


async def read_events(run_id: int, after: int = 0, *, silence: float = math.inf) -> AsyncGenerator[list[Batch], None]:
    """Yield committed events beyond ``after`` as they come, never very many; end with the run's terminal event.

    An empty list says that nothing has come for ``silence`` seconds. A run that is over yields at least its
    terminal events, also when ``after`` lies beyond them. Raises :class:`LogGone` when retention removed the log,
    and the database's error when it is away for long.
    """
    with hub.watch(run_id) as (tail, watch):
        cursor, said = after, time.monotonic()
        patience = said + PATIENCE
        while True:
            watch.changed.clear()
            try:
                batches, more = _near(cursor, tail) or await _next(run_id, cursor, tail)
                patience = time.monotonic() + PATIENCE
            except ERRORS as error:
                if not passes(error) or time.monotonic() > patience:
                    raise
                batches, more = [], False
            if batches:
                cursor = batches[-1].last
                yield batches
                if is_terminal(batches[-1].events[-1]):
                    return
                said = time.monotonic()
            if not more and not watch.changed.rung:
                if not tail.owned:
                    waker.need()
                await watch.changed.wait()
            if time.monotonic() - said >= silence:
                yield []
                said = time.monotonic()


def _near(cursor: int, tail: Tail) -> tuple[list[Batch], bool] | None:
    """What is here beyond ``cursor``, and whether that may not be all; None when the log has to be asked."""
    near = tail.beyond(cursor)
    if not near and not (near is not None and tail.owned):
        return None
    # What is here has committed; only an owner knows that it is all.
    return near, bool(near) and not (tail.owned and near[-1].last == tail.last)


async def _next(run_id: int, cursor: int, tail: Tail) -> tuple[list[Batch], bool]:
    """What the log has beyond ``cursor``, and whether to look again; the terminal events of a run that is over."""
    batches, more = await in_db_read(look, run_id, cursor)
    if not batches and not tail.owned and await in_db_read(_over, run_id):
        return await in_db_read(_ending, run_id, cursor), True
    return batches, more


def _over(run_id: int) -> bool:
    found = Run.objects.filter(pk=run_id).values_list("status", "events_dropped").first()
    if found is None or found[1]:
        raise LogGone
    return found[0] not in ("created", "running")


def _ending(run_id: int, cursor: int) -> list[Batch]:
    """What is left of a run that is over: the rest, or its terminal events again when nothing is."""
    rest = page(run_id, cursor)
    if rest:
        return rest
    batch = _last_batch(run_id)
    first = next((n for n, event in enumerate(batch.events) if event[0] == "stop"), len(batch.events) - 1)
    return [batch.after(batch.first + first - 1)]


def _last_batch(run_id: int) -> Batch:
    batches = page(run_id, last_seq(run_id) - 1)
    if not batches:
        raise LogGone
    few = whole(run_id, batches[-1].first - 4)
    return Batch(few[0].first, [event for batch in few for event in batch.events], None)
