"""Drive one run: carry out the loop's orders, act and ask, until it is done or not ours any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

import structlog

from agents import loop, providers
from agents.context import summary_text
from agents.events import Fence, hub
from agents.executor.ask import ask
from agents.executor.storing import Wish, stored
from agents.loop import Act, Advanced, Ask, CallToRun, Done, Held, Outcome, Ran, Summarize, Summarized
from agents.providers.base import ProviderError
from lettaweb.lib.db import in_db
from lettaweb.lib.faults import reach
from lettaweb.lib.transient import ERRORS
from tools import runner

ANY_VERB = frozenset({"act", "ask"})
UNDO_SECONDS = 5.0
log = structlog.get_logger(__name__)


async def drive(fence: Fence, wish: Wish, first: Advanced | None = None) -> bool:
    """Run ``fence``'s run to its end, or to where ``wish`` lets it leave; whether it ended.

    ``first``: what the transaction that began the run said comes first. Raises :class:`loop.Lost` when somebody
    else took or ended it.
    """
    outcome: Outcome = None
    last = 0 if fence.epoch == 1 else None
    while True:
        if first is None:
            advanced, last = await _advance(fence, outcome, wish, last=last)
        else:
            advanced, first = first, None
            last = _publish(fence, advanced) or last
        match advanced.order:
            case Ask():
                reach("ask")
                outcome = await ask(fence, advanced.order)
            case Act():
                reach("act")
                outcome = await act(fence, advanced.order, wish)
            case Summarize():
                outcome = await summarize(advanced.order)
            case Done():
                return True
            case Held() | None:
                return False


async def _advance(fence: Fence, outcome: Outcome, wish: Wish, *, last: int | None) -> tuple[Advanced, int | None]:
    """The loop's answer to ``outcome``, and where the log stands then (None: not known)."""
    hold = ANY_VERB if wish.leave else frozenset()
    known = [last]

    def work() -> Advanced:
        # A second try cannot know whether the first one counted: it asks the log where it stands.
        last, known[0] = known[0], None
        advanced = loop.advance(fence, outcome, last=last, hold=hold)
        reach("advanced")
        known[0] = advanced.batch.last if advanced.batch else last
        return advanced

    storing = asyncio.create_task(stored(fence, work))
    try:
        advanced = await asyncio.shield(storing)
    except asyncio.CancelledError:
        await _undo(fence, storing)
        raise
    _publish(fence, advanced)
    return advanced, known[0]


def _publish(fence: Fence, advanced: Advanced) -> int | None:
    """Tell readers what was logged; the number of its last event, None for nothing."""
    if advanced.batch is None:
        return None
    hub.publish(fence.run_id, advanced.batch)
    return advanced.batch.last


async def _undo(fence: Fence, storing: asyncio.Task[Advanced]) -> None:
    """We have to go while a transaction is under way: its end is awaited, and claimed calls are given back."""
    try:
        advanced = await asyncio.wait_for(storing, UNDO_SECONDS)
        _publish(fence, advanced)
        if isinstance(advanced.order, Act):
            await in_db(loop.unclaim, fence, [call.pk for call in advanced.order.calls])
    except (*ERRORS, loop.Lost, TimeoutError) as error:
        log.info("run_left_while_storing", run=fence.run_id, error=str(error)[:200])


# --- act -------------------------------------------------------------------------------------------


async def act(fence: Fence, order: Act, wish: Wish) -> Ran:
    """Run the claimed calls beside each other; each result is stored as it comes, the last by the loop."""
    tasks = [asyncio.create_task(_run_call(call)) for call in order.calls]
    wish.calls = tasks
    try:
        for count, done in enumerate(asyncio.as_completed(tasks), start=1):
            ran: Ran = await done
            reach("acted")
            if count == len(tasks):
                return ran
            await stored(fence, partial(loop.store, fence, ran))
    except asyncio.CancelledError:
        await _keep_results(fence, tasks)
        raise
    finally:
        wish.calls = ()
        for task in tasks:
            task.cancel()
        # Nobody may take the run over while a tool of ours still works.
        await asyncio.gather(*tasks, return_exceptions=True)
    raise AssertionError("an act without calls")


async def _keep_results(fence: Fence, tasks: Sequence[asyncio.Task[Ran]]) -> None:
    """We have to go: what has ended is stored if the database lets us, so that nobody needs to wonder about it."""
    ended = [task.result() for task in tasks if task.done() and not task.cancelled() and task.exception() is None]
    with contextlib.suppress(*ERRORS, loop.Lost):
        for ran in ended:
            await in_db(loop.store, fence, ran)


async def _run_call(call: CallToRun) -> Ran:
    return Ran(call.pk, await runner.run(call.code, call.for_sandbox()), call.block_versions)


async def summarize(order: Summarize) -> Summarized:
    """Ask for a summary of what has to leave the context."""
    try:
        response = await providers.get(order.provider).complete(order.request)
    except ProviderError as error:
        return Summarized(order, None, error.message)
    text = summary_text(response, clip_chars=order.clip_chars)
    return Summarized(order, text, "" if text else "The model gave no summary")
