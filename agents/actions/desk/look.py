"""What belongs to one call on a screen: its set, the messages that led to it, its history, its comments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agents.actions.desk.find import find, rows
from agents.models import CallComment, Decision, Message, MessageRole, ToolCall
from agents.wire.approvals import approval_detail

LAST_MESSAGES = 8


def detail(call_uuid: UUID) -> dict[str, Any]:
    """The call ``call_uuid`` with all that a person needs to decide (``approval_detail``); a 404 else."""
    return detail_of(find(call_uuid))


def detail_of(call: ToolCall) -> dict[str, Any]:
    return approval_detail(
        call,
        siblings=rows().filter(message_id=call.message_id, gated=True).order_by("pk"),
        messages=last_messages(call),
        decisions=Decision.objects.filter(call=call).order_by("pk"),
        comments=CallComment.objects.filter(call=call).order_by("pk"),
    )


def last_messages(call: ToolCall, count: int = LAST_MESSAGES) -> list[Message]:
    """The last ``count`` messages of the conversation up to the call's own, oldest first."""
    found = Message.objects.filter(conversation_id=call.conversation_id, pk__lte=call.message_id)
    found = found.exclude(role=MessageRole.SYSTEM).select_related("run", "step").order_by("-pk")
    return list(found[:count])[::-1]
