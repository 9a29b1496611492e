"""How many calls the views of the queue hold, what they can be filtered by, and what has changed since."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from agents.actions.desk import warn_before
from agents.filters.queue import Wish, kept_until
from agents.models import Agent, CallState, ToolCall
from agents.models.toolcall import calls_that_wait

MOST_CHOICES = 300
SETTLING_SECONDS = 3


def counts(user: Any, now: datetime | None = None) -> dict[str, int]:
    """How many calls the views hold, History left out."""
    now = now or timezone.now()
    found = calls_that_wait().aggregate(
        waiting=Count("pk"),
        mine=Count("pk", filter=Q(held_by=user, held_until__gt=kept_until(now))),
        expiring=Count("pk", filter=Q(expires_at__lte=now + warn_before())),
        unknown=Count("pk", filter=Q(state=CallState.UNKNOWN)),
    )
    return {name: int(value) for name, value in found.items()}


def counts_once(request: Any) -> dict[str, int]:
    """:func:`counts` for the person of a request, read once for all parts of its page."""
    if not hasattr(request, "desk_counts"):
        request.desk_counts = counts(request.user)
    found: dict[str, int] = request.desk_counts
    return found


def choices(wish: Wish) -> dict[str, list[tuple[str, str]]]:
    """The tools and agents that wait, for the filters: (value, label) in order of their labels."""
    pairs = set(calls_that_wait().order_by().values_list("name", "agent").distinct()[:MOST_CHOICES])
    agents = Agent.objects.filter(pk__in={agent for _, agent in pairs}).only("uuid", "name")
    named = [(agent.wire_id, agent.name) for agent in agents]
    tools = sorted({(name, name) for name, _ in pairs})
    return {"tools": tools, "agents": sorted(named, key=lambda pair: pair[1])}


# --- what has changed --------------------------------------------------------------------------------


def newest(now: datetime) -> int:
    """The youngest call that every reader knows of; younger ones may still be on their way to a commit."""
    rows = ToolCall.objects.filter(created_at__lt=now - timedelta(seconds=SETTLING_SECONDS)).order_by("-pk")
    return rows.values_list("pk", flat=True).first() or 0


def arrived(rows: QuerySet[ToolCall], beyond: int, since: datetime) -> QuerySet[ToolCall]:
    """Those of ``rows`` that began to wait after a list was made."""
    return rows.filter(Q(pk__gt=beyond) | Q(state=CallState.UNKNOWN, asked_at__gte=since))
