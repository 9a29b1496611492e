"""Which runs a list shows."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.http import QueryDict

from agents.models import Agent, Conversation, Run, RunStatus, ToolCall
from agents.models.run import ACTIVE
from agents.policies.rows import DEFAULT, keys
from lettaweb.lib.bodies import flag, number, words
from lettaweb.lib.paging import choice, word
from lettaweb.lib.problems import Problem

COMPARISONS = {"eq": "exact", "gte": "gte", "lte": "lte"}


def runs_of(query: QueryDict) -> QuerySet[Run]:
    """The runs that ``query`` asks for, with what their wire form reads."""
    rows = _by_owner(query, readable(Run.objects.all()))
    rows = _by_state(query, rows)
    return _by_work(query, rows)


def readable(rows: QuerySet[Run]) -> QuerySet[Run]:
    """``rows`` with what their wire form reads: two more queries for any number of rows."""
    agents = Prefetch("agent", Agent.objects.only("id", "uuid"))
    conversations = Prefetch("conversation", Conversation.objects.only("id", "uuid", "is_default"))
    return rows.prefetch_related(agents, conversations)


def active(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Those of ``rows`` that are not over."""
    # Written out, the inner condition is that of a partial index: a few rows, however many runs are over.
    inner = "SELECT id FROM agents_run WHERE status IN ('created', 'running')"
    return rows.extra(where=[f"agents_run.id IN ({inner})"])  # noqa: S610


def _by_owner(query: QueryDict, rows: QuerySet[Run]) -> QuerySet[Run]:
    named = [*words(query, "agent_id"), *words(query, "agent_ids")]
    if named:
        rows = rows.filter(agent__in=keys(Agent, named))
    conversation = word(query, "conversation_id")
    if conversation == DEFAULT:
        return rows.filter(conversation__is_default=True)
    return rows.filter(conversation__in=keys(Conversation, [conversation])) if conversation else rows


def _by_state(query: QueryDict, rows: QuerySet[Run]) -> QuerySet[Run]:
    if flag(query, "active"):
        rows = active(rows)
    statuses = words(query, "statuses")
    if unknown := set(statuses) - set(RunStatus.values):
        raise Problem(422, f"statuses: '{min(unknown)[:40]}' is not one of {', '.join(RunStatus.values)}")
    if statuses:
        rows = _of_status(rows, frozenset(statuses))
    background = flag(query, "background")
    if background is not None:
        rows = rows.filter(background=background)
    reason = word(query, "stop_reason")
    return rows.filter(stop_reason=reason) if reason else rows


def _of_status(rows: QuerySet[Run], statuses: frozenset[str]) -> QuerySet[Run]:
    if statuses == {RunStatus.FAILED}:
        return rows.extra(where=["agents_run.status = 'failed'"])  # as its partial index has it
    rows = rows.filter(status__in=statuses)
    return active(rows) if statuses <= set(ACTIVE) else rows


def _by_work(query: QueryDict, rows: QuerySet[Run]) -> QuerySet[Run]:
    steps = number(query, "step_count")
    if steps is not None:
        operator = COMPARISONS[choice(query, "step_count_operator", tuple(COMPARISONS), "eq")]
        rows = rows.filter(**{f"steps_count__{operator}": steps})
    tools = words(query, "tools_used")
    if tools:
        rows = rows.filter(Exists(ToolCall.objects.filter(step__run=OuterRef("pk"), name__in=tools)))
    family = word(query, "template_family")
    return rows.filter(agent__base_template_id=family) if family else rows
