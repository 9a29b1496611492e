"""Where a member stands after the loop looked at its run: the only code that moves members on."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents import loop
from agents.actions.cancel import cancel_course
from agents.events import Fence
from agents.loop import Course, Held, Outcome
from agents.loop.course import log_many
from agents.loop.crash import fail_run
from agents.loop.many import resume_many
from agents.loop.offer import RULE_OUTCOMES
from agents.models import Run, RunStatus, ToolCall
from batches.models import BatchItem, BatchJob, BatchMember, MemberState, RequestStatus
from lettaweb.lib.many import insert_many, update_many

OVER = frozenset({MemberState.DONE, MemberState.FAILED, MemberState.CANCELLED, MemberState.EXPIRED})
BEFORE_BOTH = frozenset({"act", "ask"})
STATE_OF = {
    RunStatus.COMPLETED: MemberState.DONE,
    RunStatus.FAILED: MemberState.FAILED,
    RunStatus.CANCELLED: MemberState.CANCELLED,
}
INTERNAL = {"type": "internal_error", "message": "An unknown error occurred"}
GONE = {"type": "agent_deleted", "message": "The agent was deleted"}
ENDED_ELSEWHERE = {"type": "cancelled", "message": "The run was ended by somebody else"}


def look(
    job: BatchJob,
    wanted: Sequence[tuple[BatchMember, Outcome]],
    *,
    hold: frozenset[str] = BEFORE_BOTH,
    ahead: dict[int, Course] | None = None,
) -> dict[int, loop.Order]:
    """Tell the loop what came of the members' runs and move them on; the orders by member id, in the caller's
    transaction. A cancelled job keeps what was said and goes no further. ``ahead``: the courses, read before it.
    """
    courses = resume_many(_fences([member for member, _ in wanted], ahead), ahead)
    orders: dict[int, loop.Order] = {}
    held: list[tuple[BatchMember, Course]] = []
    for member, outcome in wanted:
        course = courses.get(member.run_id or 0)
        if course is None:
            continue
        loop.apply(course, outcome)
        if job.cancelled_at is not None and not course.ended:
            cancel_course(course)
        order = loop.next_order(course, hold)
        orders[member.pk] = order
        if order == Held("ask"):
            held.append((member, course))
    make_items(job, held)
    log_many(list(courses.values()))
    _move_on([member for member, _ in wanted], courses, orders)
    return orders


def _fences(members: Sequence[BatchMember], ahead: Mapping[int, Course] | None) -> list[Fence]:
    """Whose the members' runs were when they were read."""
    if ahead is None:
        return [Fence(member.run.pk, member.run.epoch) for member in members if member.run]
    return [ahead[run].fence for member in members if (run := member.run_id) in ahead and run]


def _move_on(members: Sequence[BatchMember], courses: Mapping[int, Course], orders: Mapping[int, loop.Order]) -> None:
    moved: dict[str, list[BatchMember]] = defaultdict(list)
    for member in members:
        course = courses.get(member.run_id or 0)
        if course is None:
            end(member, MemberState.FAILED if member.agent_id is None else MemberState.CANCELLED, lost(member))
        elif course.ended and course.run.stop_reason == "requires_approval":
            moved[MemberState.PARKED].append(member)
        elif course.run.status == RunStatus.FAILED:
            end(member, failure_of(member, course), course.run.error)
        elif course.ended:
            moved[STATE_OF[RunStatus(course.run.status)]].append(member)
        else:
            moved[_open_state(orders[member.pk])].append(member)
    for state, found in moved.items():
        move(found, state, next(iter(courses.values())).now)
    _close_items([member for member in members if member.state in OVER])


def _close_items(members: Sequence[BatchMember]) -> None:
    """A member that is over will not be asked again: its item that was never sent is over, too."""
    for state, status in ((MemberState.FAILED, RequestStatus.FAILED), (MemberState.CANCELLED, RequestStatus.CANCELLED)):
        keys = [member.pk for member in members if member.state == state]
        if not keys:
            continue
        rows = BatchItem.objects.filter(member__in=keys, llm_batch=None, answered_at=None)
        rows.update(request_status=status, answered_at=timezone.now())


def _open_state(order: loop.Order) -> MemberState:
    match order:
        case Held("ask"):
            return MemberState.READY
        case loop.Ask():
            return MemberState.IN_FLIGHT
        case loop.Summarize():
            return MemberState.READY
    return MemberState.ACTING


def failure_of(member: BatchMember, course: Course) -> MemberState:
    detail = (course.run.error or {}).get("detail")
    return {"expired": MemberState.EXPIRED, "canceled": MemberState.CANCELLED}.get(str(detail), MemberState.FAILED)


def lost(member: BatchMember) -> dict[str, Any]:
    return GONE if member.agent_id is None else ENDED_ELSEWHERE


def move(members: Sequence[BatchMember], state: str, now: datetime) -> None:
    """Set the state of members."""
    for member in members:
        member.state, member.since = state, now
    update_many(members, "state", "since")


def end(member: BatchMember, state: str, error: Mapping[str, Any] | None, now: datetime | None = None) -> None:
    """The member is over, and why."""
    member.state, member.since = state, now or timezone.now()
    member.error = {key: error[key] for key in ("type", "message") if error.get(key)} if error else None
    member.save(update_fields=["state", "since", "error"])


def fail_member(member: BatchMember) -> None:
    """A bug met this member: its run fails, its conversation stays usable, the others go on."""
    if member.run is not None:
        fail_run(Fence(member.run.pk, member.run.epoch))
    with transaction.atomic():
        end(member, MemberState.FAILED, INTERNAL)
        _close_items([member])


# --- items -------------------------------------------------------------------------------------------


def make_items(job: BatchJob, held: Sequence[tuple[BatchMember, Course]]) -> None:
    """The item of each member's next model call; its uuid goes into the run, and so onto its messages."""
    asked = _unsent([member for member, _ in held]) if held else set[int]()
    held = [(member, course) for member, course in held if member.pk not in asked]
    if not held:
        return
    histories = _histories([course.turn_id for _, course in held])
    rows = []
    for member, course in held:
        item = item_row(job, member, course.agent.tool_rules or [], histories[course.turn_id])
        course.options["batch_item"] = str(item.uuid)
        course.touch()
        rows.append(item)
        member.steps += 1
    insert_many(rows)
    by_steps: dict[int, list[int]] = defaultdict(list)
    for member, _ in held:
        by_steps[member.steps].append(member.pk)
    for steps, keys in by_steps.items():
        BatchMember.objects.filter(pk__in=keys).update(steps=steps)


def _unsent(members: Sequence[BatchMember]) -> set[int]:
    """Those that have an item which was not sent yet: nothing but a summary came between."""
    rows = BatchItem.objects.filter(member__in=[member.pk for member in members], llm_batch=None, answered_at=None)
    return set(rows.values_list("member", flat=True))


def item_row(job: BatchJob, member: BatchMember, rules: Sequence[Any], called: Sequence[str]) -> BatchItem:
    """The row of a member's next item, with its own copy of where the tool rules stand; not stored yet."""
    state = {"tool_rules": list(rules), "tool_call_history": list(called)}
    return BatchItem(
        uuid=uuid.uuid4(),
        job=job,
        member=member,
        agent_uuid=member.agent_uuid,
        number=member.steps,
        step_state={"step_number": member.steps, "tool_rules_solver": state},
    )


def _histories(turns: Sequence[int]) -> dict[int, list[str]]:
    """The names of the calls that count for the tool rules, by turn."""
    found: dict[int, list[str]] = defaultdict(list)
    calls = ToolCall.objects.filter(turn_id__in=turns, outcome__in=RULE_OUTCOMES).order_by("id")
    for turn, name in calls.values_list("turn_id", "name"):
        found[turn].append(name)
    return found


def make_retry_items(job: BatchJob, members: Sequence[BatchMember]) -> None:
    """The items of requests that go again; they stand where the failed ones stood."""
    last = {item.member_id: item for item in _sent(members).order_by("id")}
    rows = [_copy(job, member, last[member.pk]) for member in members]
    runs = {run.pk: run for run in Run.objects.filter(pk__in=[member.run_id for member in members])}
    for member, item in zip(members, rows, strict=True):
        runs[member.run_id or 0].options["batch_item"] = str(item.uuid)
    update_many(list(runs.values()), "options")
    insert_many(rows)


def _sent(members: Sequence[BatchMember]) -> QuerySet[BatchItem]:
    return BatchItem.objects.filter(member__in=[member.pk for member in members])


def _copy(job: BatchJob, member: BatchMember, item: BatchItem) -> BatchItem:
    fields = {"agent_uuid": item.agent_uuid, "number": item.number, "step_state": item.step_state, "tools": item.tools}
    return BatchItem(uuid=uuid.uuid4(), job=job, member=member, **fields)
