"""Which messages a list shows, and how."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet
from django.http import QueryDict

from agents.models import Agent, Conversation, Message, Run, Step
from agents.policies import rows as known
from agents.wire.messages import DEFAULT_VIEW, View
from lettaweb.lib.bodies import flag, words
from lettaweb.lib.paging import word
from lettaweb.lib.statements import PreparedMany


def of_agent(query: QueryDict, owner: Agent) -> QuerySet[Message]:
    """The messages of all conversations of ``owner``, or of the one that ``conversation_id`` names."""
    return _narrowed(query, _of_conversation(query, owner, Message.objects.filter(agent=owner)))


def of_conversation(query: QueryDict, conversation: Conversation) -> QuerySet[Message]:
    return _narrowed(query, Message.objects.filter(conversation=conversation))


def of_everybody(query: QueryDict) -> QuerySet[Message]:
    return _narrowed(query, _of_conversation(query, None, Message.objects.all()))


def of_work(query: QueryDict, work: Run | Step) -> QuerySet[Message]:
    """The messages of a run or of a step."""
    rows = Message.objects.filter(run=work) if isinstance(work, Run) else Message.objects.filter(step=work)
    return _narrowed(query, rows)


def readable(rows: QuerySet[Message]) -> QuerySet[Message]:
    """``rows`` with what their wire form reads of their own; see :func:`named`."""
    return rows.defer("search_text")


def named(rows: Sequence[Message]) -> Sequence[Message]:
    """``rows`` with the names of their runs and steps: two reads for a page, however many rows are on it."""
    runs = {run.pk: run for run in _runs(list({row.run_id for row in rows if row.run_id}))}
    steps = {step.pk: step for step in _steps(list({row.step_id for row in rows if row.step_id}))}
    for row in rows:
        row.run, row.step = runs.get(row.run_id or 0), steps.get(row.step_id or 0)
    return rows


_runs = PreparedMany(lambda keys: Run.objects.filter(pk__in=keys).order_by().only("id", "uuid"))
_steps = PreparedMany(lambda keys: Step.objects.filter(pk__in=keys).order_by().only("id", "uuid"))


def view_of(query: QueryDict) -> View:
    """How the client wants its messages."""
    spoken = flag(query, "use_assistant_message")
    return View(
        use_assistant_message=DEFAULT_VIEW.use_assistant_message if spoken is None else spoken,
        tool_name=word(query, "assistant_message_tool_name") or DEFAULT_VIEW.tool_name,
        tool_argument=word(query, "assistant_message_tool_kwarg") or DEFAULT_VIEW.tool_argument,
        types=frozenset(words(query, "include_return_message_types")) or None,
    )


def _of_conversation(query: QueryDict, owner: Agent | None, rows: QuerySet[Message]) -> QuerySet[Message]:
    wanted = word(query, "conversation_id")
    if not wanted:
        return rows
    if wanted == known.DEFAULT:
        return rows.filter(conversation__is_default=True) if owner is None else _of_default(owner)
    found = Conversation.objects.filter(pk__in=known.keys(Conversation, [wanted]))
    key = (found.filter(agent=owner) if owner else found).values_list("pk", flat=True).first()
    return rows.none() if key is None else Message.objects.filter(conversation=key)


def _of_default(owner: Agent) -> QuerySet[Message]:
    # By the conversation's key alone: a page is a seek in the index (conversation, id).
    return Message.objects.filter(conversation=known.default_conversation(owner))


def _narrowed(query: QueryDict, rows: QuerySet[Message]) -> QuerySet[Message]:
    if not flag(query, "include_err"):
        rows = rows.exclude(is_err=True)
    group = word(query, "group_id")
    return rows.filter(group_id=group) if group else rows
