"""Long tool results, shortened on their way to the model; what is stored keeps them whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agents.context.summary import middle_out
from agents.context.tokens import characters, messages_tokens
from agents.providers.base import ChatMessage, ImagePart, Part, ResultPart, TextPart

TIGHT = 0.7  # of the room: below it nothing is shortened
OLD_RESULT = 5_000  # characters that stay of a result the model has already answered to
NEW_SHARE = 0.5  # of the room, for all results of the last message together


def clip_results(messages: tuple[ChatMessage, ...], *, window: int, reserve: int = 0) -> tuple[ChatMessage, ...]:
    """``messages`` with long results shortened where they fill the window.

    The room is ``window - reserve`` tokens (``reserve``: prompt, tools and answer). At up to 70 % of it
    nothing changes. Above, results that the model has already answered to keep 5,000 characters, head and
    tail; those it has not seen yet share half of the room. Images stay. The same input gives the same
    output, so a vendor's prompt cache goes on working.
    """
    room = max(window - reserve, 0)
    if window <= 0 or messages_tokens(messages) <= TIGHT * room:
        return messages
    *old, last = messages
    results = sum(isinstance(part, ResultPart) for part in last.parts)
    newest = max(characters(int(NEW_SHARE * room)) // max(results, 1), OLD_RESULT // 5)
    return (*(_clipped(message, OLD_RESULT) for message in old), _clipped(last, newest))


def _clipped(message: ChatMessage, limit: int) -> ChatMessage:
    if not any(isinstance(part, ResultPart) for part in message.parts):
        return message
    return ChatMessage(message.role, tuple(_clip_part(part, limit) for part in message.parts))


def _clip_part(part: Part, limit: int) -> Part:
    if not isinstance(part, ResultPart) or sum(map(_length, part.parts)) <= limit:
        return part
    return replace(part, parts=tuple(_clip_texts(part.parts, limit)))


def _clip_texts(parts: tuple[TextPart | ImagePart, ...], limit: int) -> Iterable[TextPart | ImagePart]:
    total = sum(map(_length, parts))
    for part in parts:
        if isinstance(part, ImagePart):
            yield part
        else:
            yield TextPart(middle_out(part.text, limit * _length(part) // total))


def _length(part: TextPart | ImagePart) -> int:
    return len(part.text) if isinstance(part, TextPart) else 0
