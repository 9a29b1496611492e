"""Conversations as the wire writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agents.models import Conversation, Message
from agents.wire.messages import Wire
from lettaweb.lib.ids import wire_id
from tools.wire import SYSTEM_USER, moment


def conversation_state(row: Conversation) -> Wire:
    return conversation_states([row])[0]


def conversation_states(rows: Sequence[Conversation]) -> list[Wire]:
    """Conversations in the order given, with one read for all their messages in context.

    Reads ``row.agent`` (select_related it in lists).
    """
    in_context = _in_context(row.pk for row in rows)
    return [_state(row, in_context.get(row.pk, [])) for row in rows]


def _state(row: Conversation, message_ids: list[str]) -> Wire:
    return {
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
        "id": row.wire_name or "default",
        "agent_id": row.agent.wire_id,
        "summary": row.summary,
        "description": row.description,
        "in_context_message_ids": message_ids,
        "isolated_block_ids": [],
        "model": row.model,
        "model_settings": row.model_settings,
        "context_window_limit": row.context_window_limit,
        "hidden": row.hidden,
        "archived": row.archived_at is not None,
        "archived_at": moment(row.archived_at) if row.archived_at else None,
        "last_message_at": moment(row.last_message_at) if row.last_message_at else None,
    }


def _in_context(conversation_ids: Iterable[int]) -> dict[int, list[str]]:
    # Written out, the condition is that of a partial index: what left the context is not read.
    rows = Message.objects.extra(where=["agents_message.context > 0"])
    rows = rows.filter(conversation__in=list(conversation_ids))
    found: dict[int, list[str]] = {}
    for conversation, uuid in rows.order_by("conversation_id", "id").values_list("conversation_id", "uuid"):
        found.setdefault(conversation, []).append(wire_id("message", uuid))
    return found
