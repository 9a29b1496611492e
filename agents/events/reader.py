"""One cursor over a run: replay and live in one stream, nothing twice, nothing missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import ParamSpec, TypeVar

from agents.events.hub import Tail, hub
from agents.events.kinds import Batch, is_terminal
from agents.events.log import last_seq, look, page, whole
from agents.events.wake import waker
from agents.models import Run
from lettaweb.lib.db import in_db_read
from lettaweb.lib.transient import ERRORS, passes

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 60.0  # seconds that readers wait for a database that is away
LOOK_AGAIN = 1.0  # seconds; the belt beside wake-ups that may get lost


class LogGone(Exception):
    """The run's log was removed by retention."""


async def read_events(run_id: int, after: int = 0) -> AsyncIterator[list[Batch]]:
    """Yield committed events beyond ``after`` as they come, never very many; end with the run's terminal event.

    A run that is over yields at least its terminal events, also when ``after`` lies beyond them.
    Raises :class:`LogGone` when retention removed the log.
    """
    with hub.watch(run_id) as (tail, watch):
        cursor = after
        while True:
            watch.changed.clear()
            batches, more = await _patiently(_next, run_id, cursor, tail)
            if batches:
                cursor = batches[-1].last
                yield batches
                if is_terminal(batches[-1].events[-1]):
                    return
            if not more and not watch.changed.is_set():
                await _wait(watch.changed, tail)


async def _patiently(work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of ``work``, also when the database is away for a while; its error when it stays away."""
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            return await work(*args, **kwargs)
        except ERRORS as error:
            if not passes(error) or time.monotonic() > patience:
                raise
        await asyncio.sleep(LOOK_AGAIN / 4)


async def _next(run_id: int, cursor: int, tail: Tail) -> tuple[list[Batch], bool]:
    """What comes beyond ``cursor``, and whether to look again at once; the terminal events of a run that is over."""
    near = tail.beyond(cursor)
    if near or (near is not None and tail.owned):  # what is here has committed; only an owner knows that it is all
        return near, bool(near)
    batches, more = await in_db_read(look, run_id, cursor)
    if not batches and not tail.owned and await in_db_read(_over, run_id):
        return await in_db_read(_ending, run_id, cursor), True
    return batches, more


async def _wait(changed: asyncio.Event, tail: Tail) -> None:
    if not tail.owned:
        waker.need()
    try:
        await asyncio.wait_for(changed.wait(), LOOK_AGAIN)
    except TimeoutError:
        return


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
