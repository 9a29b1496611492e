"""Which conversations a list shows."""

from __future__ import annotations

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.http import QueryDict

from agents.models import Agent, Conversation, Run
from agents.policies.rows import keys
from lettaweb.lib.paging import choice, word

ORDER_BY = ("created_at", "last_run_completion", "last_message_at")
ARCHIVE = ("unarchived", "archived", "all")


def conversations_of(query: QueryDict) -> QuerySet[Conversation]:
    """The conversations that ``query`` asks for, without default and hidden ones."""
    owners = Prefetch("agent", Agent.objects.only("id", "uuid"))
    rows = Conversation.objects.filter(is_default=False).exclude(hidden=True).prefetch_related(owners)
    if agent := word(query, "agent_id"):
        rows = rows.filter(agent__in=keys(Agent, [agent])[:1])
    status = choice(query, "archive_status", ARCHIVE, "unarchived")
    if status != "all":
        rows = rows.filter(archived_at__isnull=status == "unarchived")
    text = word(query, "summary_search")
    return rows.filter(summary__icontains=text) if text else rows


def with_completion(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """``rows`` with ``last_run_completion``: when the newest run that is over ended."""
    over = Run.objects.filter(conversation=OuterRef("pk"), completed_at__isnull=False).order_by("-id")
    return rows.annotate(last_run_completion=Subquery(over.values("completed_at")[:1]))
