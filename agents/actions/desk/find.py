"""Finds the call that a person means and takes the lock of its conversation."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from agents.loop.course import lock
from agents.models import Agent, ToolCall
from lettaweb.lib.problems import Problem
from tools.models import Tool

BESIDE = ("conversation__agent", "agent", "message", "step__run", "tool", "decided_by", "held_by")

_NEEDED = (
    "uuid", "version", "digest", "state", "kind", "call_id", "outcome", "decided_at", "finished_at", "expires_at",
    "expire_action", "agent", "tool", "turn", "message", "conversation__uuid",
    "step__run__options", "step__run__driver", "step__run__metadata",
)  # fmt: skip


def rows() -> QuerySet[ToolCall]:
    """All calls with what decisions and screens need of their neighbours."""
    return ToolCall.objects.select_related(*BESIDE)


def light_rows(uuids: Sequence[UUID]) -> list[ToolCall]:
    """The calls ``uuids`` with only what a decision about many needs, a conversation's calls together."""
    found = ToolCall.objects.select_related("conversation", "step__run").only(*_NEEDED).filter(uuid__in=uuids)
    calls = list(found.order_by("conversation_id", "pk"))
    agents = Agent.objects.only("uuid").in_bulk({call.agent_id for call in calls})
    tools = Tool.objects.only("return_char_limit").in_bulk({call.tool_id for call in calls if call.tool_id})
    for call in calls:
        call.agent = call.conversation.agent = agents[call.agent_id]
        call.tool = tools.get(call.tool_id or 0)
    return calls


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
