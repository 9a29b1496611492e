"""The one agent loop: settle, act, prepare, ask, absorb. Live, streamed, approved, resumed and batched alike.

There is no resume code: a run is rows, and the next verb follows from the rows. Only act and ask wait, and
they are the driver's; everything here is one short transaction.
"""

from __future__ import annotations

from django.db import transaction

from agents.events import Fence
from agents.loop.absorb import absorb, absorb_failure
from agents.loop.compact import apply_summary
from agents.loop.course import Course, Lost, resume
from agents.loop.interrupted import unclaim, wake_cold
from agents.loop.orders import (
    Act,
    Advanced,
    Answered,
    Ask,
    AskFailed,
    CallToRun,
    Done,
    Held,
    Order,
    Outcome,
    Ran,
    Streamed,
    Summarize,
    Summarized,
)
from agents.loop.prepare import prepare
from agents.loop.returns import open_calls
from agents.loop.settle import settle, store_result, will_act
from lettaweb.lib.faults import reach

__all__ = [
    "Act",
    "Advanced",
    "Answered",
    "Ask",
    "AskFailed",
    "CallToRun",
    "Course",
    "Done",
    "Held",
    "Lost",
    "Order",
    "Outcome",
    "Ran",
    "Streamed",
    "Summarize",
    "Summarized",
    "advance",
    "begin",
    "store",
    "unclaim",
    "wake_cold",
]


def advance(
    fence: Fence, outcome: Outcome = None, *, last: int | None = None, hold: frozenset[str] = frozenset()
) -> Advanced:
    """Apply ``outcome`` and say what comes next, in one transaction. Raises :class:`Lost`.

    ``last``: where the log stands, if the caller knows it. ``hold``: verbs ("act", "ask") that wait for a later look.
    """
    with transaction.atomic():
        course = resume(fence, last=last)
        apply(course, outcome)
        advanced = Advanced(next_order(course, hold), course.log())
        reach("advance")
        return advanced


def begin(course: Course) -> Advanced:
    """What comes first for a run that this transaction makes; call it last in the transaction."""
    return Advanced(next_order(course), course.log())


def store(fence: Fence, outcome: Ran) -> None:
    """Apply the result of one of several calls that run beside each other; the others still run."""
    with transaction.atomic():
        store_result(resume(fence), outcome)


def apply(course: Course, outcome: Outcome) -> None:
    match outcome:
        case Answered():
            absorb(course, outcome)
        case AskFailed():
            absorb_failure(course, outcome)
        case Ran():
            store_result(course, outcome)
        case Summarized():
            apply_summary(course, outcome)
    if not course.ended:
        course.write()  # whatever comes next reads the rows


def next_order(course: Course, hold: frozenset[str] = frozenset()) -> Order:
    """The next verb, from the rows alone."""
    while not course.ended:
        calls = open_calls(course.conversation.pk) if course.known.open_calls is not False else []
        verb = "ask" if not calls else "act" if will_act(calls) else ""
        if verb in hold:
            return Held(verb)
        order = settle(course, calls) if calls else prepare(course)
        if order is not None:
            return order
    return Done(course.run.status)
