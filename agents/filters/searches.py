"""Which messages a search finds: literal words in what was said, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.memory.search import matching
from agents.models import Agent, Conversation, Message
from agents.policies.rows import DEFAULT, keys

Given = Mapping[str, Any]


def found(given: Given) -> QuerySet[Message]:
    """The messages that ``given`` (a validated body without nulls) asks for, with what their wire form reads."""
    rows = Message.objects.select_related("agent", "conversation", "run", "step").exclude(is_err=True)
    rows = matching(_dated(given, _placed(given, rows)), given.get("query", ""))
    return rows.order_by("-id")[: given["limit"]]


def _placed(given: Given, rows: QuerySet[Message]) -> QuerySet[Message]:
    if "agent_id" in given:
        rows = rows.filter(agent__in=keys(Agent, [given["agent_id"]]))
    conversation = given.get("conversation_id")
    if conversation == DEFAULT:
        rows = rows.filter(conversation__is_default=True)
    elif conversation:
        rows = rows.filter(conversation__in=keys(Conversation, [conversation]))
    for name in ("project_id", "template_id"):
        if name in given:
            rows = rows.filter(**{f"agent__{name}": given[name]})
    return rows.filter(role__in=given["roles"]) if given.get("roles") else rows


def _dated(given: Given, rows: QuerySet[Message]) -> QuerySet[Message]:
    start: datetime | None = given.get("start_date")
    end: datetime | None = given.get("end_date")
    if start:
        rows = rows.filter(created_at__gte=start)
    return rows.filter(created_at__lt=end) if end else rows
