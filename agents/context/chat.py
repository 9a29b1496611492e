"""Stored history in, a conversation out that the strictest vendor takes. Only here is that order made.

What comes out: roles alternate; the first and the last message are the user's; every call is answered
exactly once, in the message right after it, before anything else said there; ids are unique; no text is
blank; no assistant message ends in reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.context.clean import reasoning, spoken, text_of
from agents.context.history import HistoryMessage, split_prompt
from agents.context.pairing import Pair, answers, paired
from agents.providers.base import ChatMessage, Part, ReasoningPart, RedactedReasoningPart, TextPart

BEGINS = "[The conversation begins.]"
GO_ON = "[Please go on.]"
SUMMARY_FRAME = (
    "<conversation_summary>\n"
    "What was said before the messages that follow, in short:\n\n"
    "{text}\n"
    "</conversation_summary>"
)
NOTE_FRAME = "<system_note>\n{text}\n</system_note>"

Turn = tuple[bool, list[Part]]  # (said by the assistant, parts)


def chat_messages(history: Sequence[HistoryMessage]) -> tuple[ChatMessage, ...]:
    """The messages of a request for ``history`` (oldest first); never empty, never raises for stored values.

    The summary goes first wherever its row stands. Aborted answers are left out, cancelled ones stay.
    """
    summaries, body = split_prompt(history)
    shown = [message for message in body if not (message.role == "assistant" and message.mark == "aborted")]
    turns: list[Turn] = []
    for summary in summaries:
        _add(turns, False, list(_framed(summary, SUMMARY_FRAME)))
    for message, pairs in zip(shown, paired(shown), strict=True):
        for assistant, parts in _pieces(message, pairs):
            _add(turns, assistant, parts)
    return tuple(ChatMessage("assistant" if said else "user", tuple(parts)) for said, parts in _closed(turns))


def _pieces(message: HistoryMessage, pairs: list[Pair]) -> Iterator[Turn]:
    if message.role in ("assistant", "approval"):
        yield True, _answer(message, pairs)
        yield False, list(answers(pairs))
    elif message.role == "user":
        yield False, list(spoken(message.parts))
    elif message.role == "system":
        yield False, list(_framed(message, NOTE_FRAME))


def _answer(message: HistoryMessage, pairs: list[Pair]) -> list[Part]:
    """Reasoning and texts in the model's order, then the calls; [] when nothing but reasoning is left."""
    said: list[Part] = []
    for part in message.parts:
        kind = part.get("type")
        if kind == "text" and (text := text_of(part.get("text"))):
            said.append(TextPart(text))
        elif kind in ("reasoning", "redacted") and (thought := reasoning(part)):
            said.append(thought)
    if pairs:
        return [*said, *(pair.call for pair in pairs)]
    while said and isinstance(said[-1], ReasoningPart | RedactedReasoningPart):
        said.pop()
    return said


def _framed(message: HistoryMessage, frame: str) -> Iterator[TextPart]:
    text = "\n".join(filter(None, (text_of(part.get("text")) for part in message.parts)))
    if text:
        yield TextPart(frame.format(text=text))


def _add(turns: list[Turn], assistant: bool, parts: list[Part]) -> None:
    if not parts:
        return
    if turns and turns[-1][0] == assistant:
        _merge(turns[-1][1], parts)
    else:
        turns.append((assistant, parts))


def _merge(before: list[Part], parts: list[Part]) -> None:
    """Put ``parts`` behind ``before``; leading reasoning goes to the front where there is none yet.

    An answer that starts with reasoning must go on doing so; an answer that goes on where the one before
    paused keeps its order.
    """
    lead = 0
    if not _thinks(before[0]):
        lead = next((at for at, part in enumerate(parts) if not _thinks(part)), 0)
    before[:0] = parts[:lead]
    before.extend(parts[lead:])


def _thinks(part: Part) -> bool:
    return isinstance(part, ReasoningPart | RedactedReasoningPart)


def _closed(turns: list[Turn]) -> list[Turn]:
    if not turns or turns[0][0]:
        turns.insert(0, (False, [TextPart(BEGINS)]))
    if turns[-1][0]:
        turns.append((False, [TextPart(GO_ON)]))
    return turns
