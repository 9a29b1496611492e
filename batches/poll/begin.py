"""Waiting members get their run, their messages and their first item, as far as their agents are free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from agents import providers
from agents.actions.begin import Wanted, run_row, tell_run
from agents.context import estimate_tokens
from agents.loop.compact import handle, window
from agents.loop.course import Course, message_row
from agents.loop.ending import close_calls
from agents.loop.many import UNREAD_AGENT
from agents.models import Agent, Conversation, Driver, MessageRole, Run, RunStatus, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from agents.policies.rows import default_conversation
from batches.drivers import driver_of
from batches.models import BatchItem, BatchJob, BatchMember, MemberState
from batches.poll.chunks import Pace
from batches.poll.cycle import Cycle
from batches.poll.local import batch_of, free_slots
from batches.poll.places import GONE, end, item_row
from lettaweb.lib.many import insert_many, update_many
from lettaweb.lib.statements import PreparedManyValues

TOO_LARGE = {"type": "too_large", "message": "The message is larger than the context window of the agent's model"}
PAGE = 200  # members that are read at once
Ready = tuple[BatchMember, Conversation]
BUSY_STATES = (MemberState.READY, MemberState.ACTING, MemberState.IN_FLIGHT, MemberState.PARKED)


@dataclass(frozen=True, slots=True)
class Begun:
    """A member with the course of its new run and its first item, and whether it goes as a live run."""

    member: BatchMember
    course: Course
    item: BatchItem
    local: bool


def begin(cycle: Cycle, job: BatchJob, *, most: int) -> int:
    """Begin up to ``most`` members whose agents are free; how many."""
    pace, after, count = Pace(), 0, 0
    slots = free_slots(job)
    while count < most and not cycle.over:
        members = list(_waiting(job).filter(pk__gt=after).order_by("id")[: min(PAGE, most - count)])
        if not members:
            break
        after = members[-1].pk
        free = _free(job, members)
        while free and not cycle.over:
            chunk, free = free[: pace.size], free[pace.size :]
            with pace.transaction(len(chunk)):
                begun = _begin(job, chunk, slots)
            count += len(begun)
            slots -= sum(one.local for one in begun)
    return count


def _waiting(job: BatchJob) -> QuerySet[BatchMember]:
    return BatchMember.objects.filter(job=job, state=MemberState.WAITING).select_related("agent").defer(*UNREAD_AGENT)


def _free(job: BatchJob, members: Sequence[BatchMember]) -> list[Ready]:
    """Members whose turn it is, with their conversations: no earlier member of the job is the same agent's."""
    for member in members:
        if member.agent is None:
            end(member, MemberState.FAILED, GONE)
    conversations = _conversations([member.agent for member in members if member.agent])
    earlier = BatchMember.objects.filter(job=job, agent__in=conversations, state__in=BUSY_STATES)
    taken = set(earlier.values_list("agent", flat=True))
    found: list[Ready] = []
    for member in members:
        if member.agent_id and member.agent_id not in taken:
            taken.add(member.agent_id)
            found.append((member, conversations[member.agent_id]))
    return found


def _begin(job: BatchJob, ready: Sequence[Ready], slots: int) -> list[Begun]:
    """Begin those whose conversations nobody uses; in the caller's transaction."""
    keys = [conversation.pk for _, conversation in ready]
    _lock(keys)
    used = _used(keys)
    now = timezone.now()
    begun = [_begun(job, member, own, now) for member, own in ready if own.pk not in used.taken]
    fitting = [one for one in begun if _fits(one)]
    local = [one for one in fitting if one.local][: max(0, slots)]
    made = [one for one in fitting if not one.local] + local
    _place_local(job, local)
    for one in made:
        if one.course.conversation.pk in used.left:
            close_calls(one.course, "This call was never finished; its outcome is unknown.")
    _store(made, now)
    return made


def _place_local(job: BatchJob, begun: Sequence[Begun]) -> None:
    """Live runs belong to a group of their provider's, too."""
    by_provider: dict[str, list[Begun]] = defaultdict(list)
    for one in begun:
        by_provider[handle(one.course).partition("/")[0]].append(one)
    for provider, group in by_provider.items():
        llm = batch_of(job, provider, len(group))
        for one in group:
            one.item.llm_batch = llm


def _conversations(agents: Sequence[Agent]) -> dict[int, Conversation]:
    """The default conversation of each agent, by the agent's key."""
    rows = Conversation.objects.filter(agent__in=[agent.pk for agent in agents], is_default=True)
    found = {row.agent_id: row for row in rows}
    for agent in agents:
        if agent.pk not in found:
            found[agent.pk] = default_conversation(agent)
        found[agent.pk].agent = agent
    return found


def _lock(keys: Sequence[int]) -> None:
    if connection.features.has_select_for_update:
        rows = Conversation.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
        list(rows.values_list("pk"))


@dataclass(frozen=True, slots=True)
class Used:
    """Conversations that are not free: ``taken`` by a run or by calls that wait, ``left`` with calls to close first."""

    taken: set[int]
    left: set[int]


def _used(keys: Sequence[int]) -> Used:
    waiting, left = {conversation for (conversation,) in _active(keys)}, set[int]()
    for conversation, state in _open_calls(keys):
        (waiting if state in WAITING else left).add(conversation)
    return Used(waiting, left - waiting)


_active = PreparedManyValues(
    lambda keys: Run.objects.filter(conversation__in=keys, status__in=ACTIVE).order_by().values_list("conversation")
)
_open_calls = PreparedManyValues(
    lambda keys: (
        ToolCall.objects.filter(conversation__in=keys, returned=False).order_by().values_list("conversation", "state")
    )
)


def _begun(job: BatchJob, member: BatchMember, conversation: Conversation, now: datetime) -> Begun:
    request = member.request or {}
    item = item_row(job, member, conversation.agent.tool_rules or [], ())
    options = {**request.get("options", {}), "batch_item": str(item.uuid)}
    wanted = Wanted(
        options=options,
        background=True,
        driver=Driver.BATCH,
        metadata={"batch_id": job.wire_id, "batch_member": member.pk, "job_type": "batch_messages"},
    )
    run = run_row(conversation, wanted, now)
    course = Course(run=run, conversation=conversation, agent=conversation.agent, now=now, last=0)
    local = is_local(course)
    if local:
        run.driver = Driver.LIVE
    else:
        run.status, run.epoch, run.started_at = RunStatus.RUNNING, 1, now
    return Begun(member, course, item, local)


def is_local(course: Course) -> bool:
    """Whether the course's model is asked in live calls, for want of a batch API."""
    try:
        provider, _ = providers.for_handle(handle(course))
    except (ValueError, providers.UnknownProvider):
        return False
    return driver_of(provider.name) is None


def _fits(begun: Begun) -> bool:
    """Whether the messages fit into the model's window; a member whose do not is over."""
    largest = max((estimate_tokens(given["parts"]) for given in _inputs(begun)), default=0)
    if largest <= window(begun.course):
        return True
    end(begun.member, MemberState.FAILED, TOO_LARGE)
    return False


def _inputs(begun: Begun) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = (begun.member.request or {}).get("inputs", [])
    return inputs


def _store(begun: Sequence[Begun], now: datetime) -> None:
    """Write runs, messages and items, and move the members on."""
    insert_many([one.course.run for one in begun])
    messages = [
        message_row(one.course, MessageRole(given["role"]), given["parts"], **given["fields"])
        for one in begun
        for given in _inputs(one)
    ]
    insert_many(messages)
    for one in begun:
        member, run = one.member, one.course.run
        member.run, member.turn, member.steps, member.request, member.since = run, run.pk, 1, None, now
        member.state = MemberState.IN_FLIGHT if one.local else MemberState.READY
        if one.local:
            tell_run(run)
    update_many([one.member for one in begun], "run", "turn", "steps", "request", "since", "state")
    insert_many([one.item for one in begun])
