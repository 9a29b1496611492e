"""Finds the call that a person means and takes the lock of its conversation."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from agents.loop.course import lock
from agents.models import ToolCall
from lettaweb.lib.problems import Problem

BESIDE = ("conversation__agent", "agent", "message", "step__run", "tool", "decided_by", "held_by")


def rows() -> QuerySet[ToolCall]:
    """All calls with what decisions and screens need of their neighbours."""
    return ToolCall.objects.select_related(*BESIDE)


def find(uuid: UUID) -> ToolCall:
    """The call ``uuid``; a :class:`Problem` 404 when there is none."""
    found = rows().filter(uuid=uuid).first()
    if found is None:
        raise unknown(uuid)
    return found


def locked(uuid: UUID) -> ToolCall:
    """The call ``uuid`` as it is under the lock of its conversation; call it inside a transaction."""
    conversation = ToolCall.objects.filter(uuid=uuid).values_list("conversation_id", flat=True).first()
    if conversation is None:
        raise unknown(uuid)
    lock(conversation)
    return find(uuid)


def unknown(uuid: UUID) -> Problem:
    return Problem(404, f"Tool call {ToolCall.PREFIX}-{uuid} not found")
