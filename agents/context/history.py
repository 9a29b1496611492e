"""A stored message as this package reads it: plain values, so that planning needs no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.models import Message

StoredPart = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One stored message, oldest first in a history.

    ``parts`` are as ``agents.models.Message`` documents them, ``context`` is its MessageContext value,
    ``tokens`` the stored estimate (0: not estimated), ``mark`` "cancelled", "aborted" or "".
    """

    uuid: str
    role: str
    parts: Sequence[StoredPart]
    context: int = 1
    tokens: int = 0
    mark: str = ""
    model: str = ""


def history_message(row: Message) -> HistoryMessage:
    """The row's values; reads no relation."""
    return HistoryMessage(
        uuid=str(row.uuid),
        role=row.role,
        parts=row.parts,
        context=row.context,
        tokens=row.tokens,
        mark=row.mark,
        model=row.model or "",
    )


def split_prompt(history: Sequence[HistoryMessage]) -> tuple[list[HistoryMessage], list[HistoryMessage]]:
    """(summaries, body) of what is in context, without the system prompt.

    A system row that comes first of all is the prompt, which travels beside the messages. Every later one
    is something that was said (a note, a client's message) and belongs to the body.
    """
    shown = [message for message in history if message.context]
    rest = shown[1:] if shown and shown[0].role == "system" else shown
    summaries = [message for message in rest if message.role == "summary"]
    return summaries, [message for message in rest if message.role != "summary"]
