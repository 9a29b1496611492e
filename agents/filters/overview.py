"""What the start page and the lists of agents and runs show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.utils import timezone

from agents.models import Agent, Conversation, Run, RunStatus, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import Outcome, calls_that_wait
from lettaweb.lib import ids
from lettaweb.lib.text import clean_text

AGENTS, RUNS, CONVERSATIONS, SHORT = 50, 50, 20, 8
FAILED_HOURS = 24
MOST = 1000  # waiting calls whose runs a list looks at
STATES = {
    "": "All",
    "active": "Under way",
    "waiting": "Waiting for a person",
    "failed": "Failed",
    "cancelled": "Cancelled",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list by descending number, and the number that the next page begins below (0: none)."""

    rows: list[Any]
    below: int = 0


def _page(rows: QuerySet[Any], below: str, size: int) -> Listed:
    if below.isascii() and below.isdigit() and len(below) < 19:
        rows = rows.filter(pk__lt=int(below))
    found = list(rows.order_by("-pk")[: size + 1])
    return Listed(found[:size], found[size - 1].pk if len(found) > size else 0)


# --- agents ------------------------------------------------------------------------------------------


def agents(query: Mapping[str, Any]) -> Listed:
    """Agents, newest first, found by a part of their name; each with what runs and what waits."""
    rows = Agent.objects.exclude(hidden=True).defer("system", "llm_config", "extra", "metadata")
    if query.get("q"):
        rows = rows.filter(name__icontains=clean_text(str(query["q"]))[:200])
    found = _page(rows, str(query.get("below", "")), AGENTS)
    keys = [agent.pk for agent in found.rows]
    waiting = _per("agent", calls_that_wait().filter(agent__in=keys))
    running = _per("agent", Run.objects.filter(status__in=ACTIVE, agent__in=keys))
    for agent in found.rows:
        agent.waiting, agent.running = waiting.get(agent.pk, 0), running.get(agent.pk, 0)
    return found


def conversations(agent: Agent) -> list[Any]:
    """The agent's own conversation, those in which a call waits, and the newest; each with how many wait."""
    waiting = _per("conversation", calls_that_wait().filter(agent=agent))
    rows: QuerySet[Any] = Conversation.objects.filter(agent=agent)
    asking = rows.filter(pk__in=sorted(waiting)[:CONVERSATIONS])
    found = {one.pk: one for one in [*rows.order_by("-is_default", "-pk")[:CONVERSATIONS], *asking]}
    for one in found.values():
        one.waiting = waiting.get(one.pk, 0)
    return sorted(found.values(), key=lambda one: (not one.is_default, not one.waiting, -one.pk))


def _per(name: str, rows: QuerySet[Any]) -> dict[int, int]:
    return {row[name]: row["count"] for row in rows.order_by().values(name).annotate(count=Count("pk"))}


# --- runs --------------------------------------------------------------------------------------------


def runs(query: Mapping[str, Any]) -> Listed:
    """Runs, newest first, of a state and of an agent."""
    rows = with_agent(Run.objects.all())
    state = str(query.get("state", ""))
    if state == "active":
        rows = rows.filter(status__in=ACTIVE)
    elif state == "waiting":
        rows = rows.filter(pk__in=list(calls_that_wait().order_by("-pk").values_list("step__run", flat=True)[:MOST]))
    elif state in (RunStatus.FAILED, RunStatus.CANCELLED):
        rows = rows.filter(status=state)
    uuid = ids.find("agent", query.get("agent"))
    if uuid:
        rows = rows.filter(agent__in=Agent.objects.filter(uuid=uuid).values("pk"))
    return _page(rows, str(query.get("below", "")), RUNS)


def with_agent(rows: QuerySet[Run]) -> QuerySet[Run]:
    return rows.select_related("agent", "conversation").only(
        "uuid",
        "status",
        "stop_reason",
        "driver",
        "created_at",
        "completed_at",
        "error",
        "total_duration_ns",
        "input_tokens",
        "output_tokens",
        "steps_count",
        "agent__uuid",
        "agent__name",
        "conversation__uuid",
        "conversation__is_default",
    )


def running() -> list[Run]:
    return list(with_agent(Run.objects.filter(status__in=ACTIVE)).order_by("-pk")[:SHORT])


def failed() -> list[Run]:
    """Runs that failed lately, newest first."""
    since = timezone.now() - timedelta(hours=FAILED_HOURS)
    recent = Run.objects.order_by("-pk")[:2000].values("pk")
    rows = with_agent(Run.objects.filter(pk__in=recent, status=RunStatus.FAILED, created_at__gte=since))
    return list(rows.order_by("-pk")[:SHORT])


def interrupted() -> list[ToolCall]:
    """Calls that were cut off lately and whose agents were told so: nobody decided them, people should know."""
    since = timezone.now() - timedelta(hours=FAILED_HOURS)
    recent = ToolCall.objects.order_by("-pk")[:2000].values("pk")
    rows = ToolCall.objects.filter(pk__in=recent, outcome=Outcome.INTERRUPTED, decided_at=None, finished_at__gte=since)
    return list(rows.select_related("agent", "tool", "step__run").order_by("-pk")[:SHORT])
