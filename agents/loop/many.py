"""Several courses in one transaction, for drivers that have many runs at once. The verbs are the same.

What the verbs need is read ahead, for all courses together and before any lock is taken; under the lock only the
runs' epochs are compared. So the transaction holds little more than the writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.db import connection
from django.utils import timezone

from agents.context import HistoryMessage
from agents.events import Fence
from agents.loop.course import Course, Known, course_of
from agents.loop.prepare import SEEN, seen_message
from agents.memory.blocks import VIEWED, BlockView, block_view
from agents.models import AgentBlock, AgentTool, Conversation, Message, MessageContext, Run, Step, StepStatus, ToolCall
from tools.models import Tool

UNREAD_AGENT = tuple(
    f"agent__{name}"
    for name in (
        "description", "embedding_config", "metadata", "identity_ids", "extra", "hidden", "created_at", "updated_at",
        "last_run_completion", "last_run_duration_ms",
    )
)  # fmt: skip
"""What no verb reads of an agent; most of it would be converted for every course."""
UNREAD = (*UNREAD_AGENT, *(f"conversation__{name}" for name in ("created_at", "updated_at", "archived_at", "summary")))


def read_ahead(run_ids: Sequence[int], *, asking: bool = False, answered: bool = False) -> dict[int, Course]:
    """The courses of these runs as they stand, not locked.

    ``asking``: with all that a request is made of; ``answered``: with the steps that wait for their answers.
    """
    rows = Run.objects.filter(pk__in=run_ids).select_related("conversation", "agent").defer(*UNREAD)
    courses = {run.pk: course_of(run) for run in rows}
    keys = [course.conversation.pk for course in courses.values()]
    open_ = set(ToolCall.objects.filter(conversation__in=keys, returned=False).values_list("conversation", flat=True))
    for course in courses.values():
        course.known = Known(open_calls=course.conversation.pk in open_)
        if _says_nothing_yet(course):
            course.last = 0
    if asking:
        _read_requests(courses.values())
    if answered:
        for step in Step.objects.filter(run__in=courses, status=StepStatus.PENDING):
            courses[step.run_id].known.step = step
    return courses


def _read_requests(courses: Iterable[Course]) -> None:
    agents = [course.agent.pk for course in courses]
    histories = _histories([course.conversation.pk for course in courses])
    tools, blocks = _tools(agents), _blocks(agents)
    for course in courses:
        course.known.history = histories[course.conversation.pk]
        course.known.tools = tools[course.agent.pk]
        course.known.blocks = tuple(blocks[course.agent.pk])


def _histories(conversations: Sequence[int]) -> dict[int, list[HistoryMessage]]:
    found: dict[int, list[HistoryMessage]] = defaultdict(list)
    rows = Message.objects.filter(conversation__in=conversations, context__gt=MessageContext.OUT).order_by("id")
    for conversation, *row in rows.values_list("conversation_id", *SEEN):
        found[conversation].append(seen_message(*row))
    return found


def _tools(agents: Sequence[int]) -> dict[int, list[Tool]]:
    found: dict[int, list[Tool]] = defaultdict(list)
    known: dict[int, Tool] = {}
    links = list(AgentTool.objects.filter(agent__in=agents).order_by("id").values_list("agent_id", "tool_id"))
    if links:
        known = Tool.objects.in_bulk({tool for _, tool in links})
    for agent, tool in links:
        if tool in known:
            found[agent].append(known[tool])
    return found


def _blocks(agents: Sequence[int]) -> dict[int, list[BlockView]]:
    found: dict[int, list[BlockView]] = defaultdict(list)
    rows = AgentBlock.objects.filter(agent__in=agents).order_by("id")
    for agent, *row in rows.values_list("agent_id", *(f"block__{name}" for name in VIEWED)):
        found[agent].append(block_view(*row))
    return found


def _says_nothing_yet(course: Course) -> bool:
    """Whether the log of a run that no stream belongs to must be empty: it has no answer, and began with none."""
    run = course.run
    return run.epoch == 1 and not run.steps_count and "resumes" not in run.options


def resume_many(fences: Sequence[Fence], ahead: dict[int, Course] | None = None) -> dict[int, Course]:
    """The courses of the runs that are still ours, by run id; call it inside a transaction.

    ``ahead`` is what :func:`read_ahead` gave. What is said in the courses is said at one moment, in whatever
    order they are taken.
    """
    found = read_ahead([fence.run_id for fence in fences]) if ahead is None else ahead
    _lock(found[fence.run_id].conversation.pk for fence in fences if fence.run_id in found)
    now, ours = timezone.now(), set(_ours(fences))
    courses = {}
    for fence in fences:
        course = found.get(fence.run_id)
        if course is not None and fence in ours and course.fence == fence:
            course.now = now
            courses[fence.run_id] = course
    return courses


def _lock(conversations: Iterable[int]) -> None:
    """Wait for the courses, in the order of their keys: nobody who locks several waits in a circle."""
    if connection.features.has_select_for_update:
        rows = Conversation.objects.select_for_update(no_key=True).filter(pk__in=list(conversations)).order_by("pk")
        list(rows.values_list("pk"))


def _ours(fences: Sequence[Fence]) -> list[Fence]:
    keys = [fence.run_id for fence in fences]
    locked = " ORDER BY id FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING % (", ".join(["%s"] * len(keys)) or "NULL") + locked, keys)
        return [Fence(*row) for row in cursor.fetchall()]


_RUNNING = "SELECT id, epoch FROM agents_run WHERE status = 'running' AND id IN (%s)"
