"""Found messages as the wire writes them: one form per SDK generation."""

from __future__ import annotations

from collections.abc import Iterable

from agents.models import Message
from agents.wire.internal import internal_message
from agents.wire.messages import Wire, messages_of
from tools.wire import moment

SAID = {
    "system_message": "content",
    "user_message": "content",
    "assistant_message": "content",
    "reasoning_message": "reasoning",
}
"""The message types that a search shows, and the field that holds their text."""


def found_messages(rows: Iterable[Message]) -> list[Wire]:
    """What was said in each row, with where it was said; reads ``row.agent`` and ``row.conversation``."""
    return [_found(row, message) for row in rows for message in messages_of(row) if message["message_type"] in SAID]


def ranked_messages(rows: Iterable[Message]) -> list[Wire]:
    """Rows with the text that was searched and their rank, the best (newest) first."""
    return [
        {
            "embedded_text": row.search_text,
            "message": internal_message(row),
            "fts_rank": rank,
            "vector_rank": None,
            "rrf_score": 1 / (60 + rank),
        }
        for rank, row in enumerate(rows, start=1)
    ]


def _found(row: Message, message: Wire) -> Wire:
    field = SAID[message["message_type"]]
    return {
        "message_type": message["message_type"],
        field: message[field],
        "created_at": moment(row.created_at),
        "message_id": row.wire_id,
        "agent_id": row.agent.wire_id,
        "conversation_id": row.conversation.wire_name,
    }
