"""A Messages answer put together, from stream events or from a whole message; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from agents.providers.anthropic.wire import PROVIDER
from agents.providers.base import (
    CallDelta,
    CallPart,
    CallStart,
    Delta,
    ModelResponse,
    Part,
    ProviderError,
    ReasoningDelta,
    ReasoningPart,
    RedactedReasoningPart,
    StopReason,
    TextDelta,
    TextPart,
    Usage,
)
from agents.providers.failures import refusal, unusable
from agents.providers.lines import Joiner, arguments_of, clean, count_of, load_object, mapping_of, text_of

VENDOR = "Anthropic"
STOPS: Mapping[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "pause_turn": "pause",
    "refusal": "refusal",
}
KINDS = ("text", "thinking", "redacted_thinking", "tool_use")
FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


@dataclass(slots=True)
class Block:
    """A block of the answer while it grows.

    ``given`` are arguments that came whole with its start; ``whole``: they did not come in pieces, so that
    nobody can see whether they were cut.
    """

    kind: str
    id: str = ""
    name: str = ""
    call: int = -1
    given: str = ""
    data: str = ""
    signature: str = ""
    pieces: list[str] = field(default_factory=list)
    joiner: Joiner = field(default_factory=Joiner)
    closed: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Assembly:
    """Takes the events of a Messages stream one by one, in the order in which they came."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.stopped = False
        self.ended = False
        self.started = False
        self._names = names or {}
        self._blocks: list[Block] = []
        self._at: dict[int, Block] = {}
        self._ids: set[str] = set()
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._id = ""

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """The deltas of one event; unknown events and blocks give none. Raises ProviderError for an error event."""
        kind = event.get("type")
        deltas: list[Delta] = []
        if kind == "content_block_delta":
            deltas = self._grow(_index(event), mapping_of(event.get("delta")))
        elif kind == "content_block_start":
            deltas = self.open(_index(event), mapping_of(event.get("content_block")))
        elif kind == "content_block_stop":
            deltas = self._close(self._at.get(_index(event)))
        elif kind == "message_start":
            message = mapping_of(event.get("message"))
            self._id = text_of(message.get("id"))
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._stop = text_of(mapping_of(event.get("delta")).get("stop_reason")) or self._stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.stopped = self.ended = True
            deltas = [delta for block in self._blocks for delta in self._close(block)]
        elif kind == "error":
            raise self._failed(event)
        self.started = self.started or bool(deltas)
        return deltas

    def finish(self) -> ModelResponse:
        """The whole answer. Raises ProviderError when it announces a tool call and holds none."""
        return concluded(self._blocks, self._stop, self._usage, self._id)

    # --- blocks

    def open(self, index: int, start: Mapping[str, Any]) -> list[Delta]:
        """Begin a block; a whole block is one that brings all its text with it."""
        kind = text_of(start.get("type"))
        if kind not in KINDS:
            return []
        before = self._close(self._at.get(index))  # some servers give every block the same index
        block = Block(kind, data=text_of(start.get("data")), signature=text_of(start.get("signature")))
        self._at[index] = block
        self._blocks.append(block)
        if kind == "tool_use":
            return [*before, self._call(block, start)]
        return [*before, *self._say(block, text_of(start.get("text" if kind == "text" else "thinking")))]

    def _call(self, block: Block, start: Mapping[str, Any]) -> Delta:
        block.call = sum(other.kind == "tool_use" for other in self._blocks) - 1
        block.id = text_of(start.get("id"))
        if not block.id or block.id in self._ids:
            block.id = f"call_{uuid4().hex}"
        self._ids.add(block.id)
        name = text_of(start.get("name"))
        block.name = self._names.get(name, name)
        given = start.get("input")
        block.given = clean(arguments_of(given)) if given else ""
        return CallStart(block.call, block.id, block.name)

    def _grow(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        kind = text_of(delta.get("type"))
        block = self._at.get(index)
        if kind == "signature_delta" and block:
            block.signature += text_of(delta.get("signature"))
        piece = text_of(delta.get(FIELDS.get(kind, "")))
        if not piece or (block and block.kind != "tool_use" and kind == "input_json_delta"):
            return []
        if block is None:
            return self.open(index, {"type": "thinking" if kind == "thinking_delta" else "text"}) + self._grow(
                index, delta
            )
        return self._say(block, piece)

    def _say(self, block: Block, piece: str) -> list[Delta]:
        said = block.joiner.feed(piece)
        if not said:
            return []
        block.pieces.append(said)
        return [_delta(block, said)]

    def _close(self, block: Block | None) -> list[Delta]:
        """End a block: a call's arguments that came with its start, or none at all, are said now."""
        if block is None or block.closed:
            return []
        block.closed = True
        rest = block.joiner.rest()
        if block.kind == "tool_use" and not "".join((*block.pieces, rest)).strip():
            rest += block.given or "{}"
            block.whole = True
        if rest:
            block.pieces.append(rest)
        return [_delta(block, rest)] if rest else []

    # --- the rest

    def _count(self, usage: Any) -> None:
        self._usage |= {name: value for name, value in mapping_of(usage).items() if value is not None}

    def _failed(self, event: Mapping[str, Any]) -> ProviderError:
        known = refusal(VENDOR, event, status=None)
        if self.started:
            return unusable(VENDOR, f"{known.message} (in the middle of an answer)", detail=known.detail)
        return known


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _delta(block: Block, said: str) -> Delta:
    if block.kind == "tool_use":
        return CallDelta(block.call, said)
    return TextDelta(said) if block.kind == "text" else ReasoningDelta(said)


def concluded(blocks: Sequence[Block], vendor_stop: str, usage: Mapping[str, Any], request_id: str) -> ModelResponse:
    """The response of these blocks. A call wins over the vendor's stop reason, a cut one is left out."""
    stop = STOPS.get(vendor_stop, "end_turn")
    if stop == "refusal":
        blocks = [block for block in blocks if block.kind != "tool_use"]
    elif stop == "max_tokens" and blocks and _cut(blocks[-1]):
        blocks = blocks[:-1]
    parts = tuple(part for block in blocks if (part := _part(block)) is not None)
    called = any(isinstance(part, CallPart) for part in parts)
    if vendor_stop == "tool_use" and not called:
        raise ProviderError("no_tool_call", f"{VENDOR} announced a tool call and sent none", started=bool(parts))
    if called and stop in ("end_turn", "pause"):
        stop = "tool_use"
    return ModelResponse(parts, stop, read_usage(usage), vendor_stop, request_id)


def _cut(block: Block) -> bool:
    return block.kind == "tool_use" and (block.whole or load_object(block.text) is None)


def _part(block: Block) -> Part | None:
    if block.kind == "tool_use":
        return CallPart(block.id, block.name, block.text)
    if block.kind == "redacted_thinking":
        return RedactedReasoningPart(block.data, PROVIDER) if block.data else None
    if block.kind == "thinking":
        return ReasoningPart(block.text, block.signature, PROVIDER) if block.text or block.signature else None
    return TextPart(block.text) if block.text else None


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """The tokens of a usage object; the vendor counts cached input apart, we do not."""
    known = any(isinstance(usage.get(name), int) for name in ("input_tokens", "output_tokens"))
    cached = count_of(usage.get("cache_read_input_tokens"))
    written = count_of(usage.get("cache_creation_input_tokens"))
    return Usage(
        input=count_of(usage.get("input_tokens")) + cached + written,
        output=count_of(usage.get("output_tokens")),
        cached=cached,
        cache_write=written,
        reasoning=count_of(mapping_of(usage.get("output_tokens_details")).get("thinking_tokens")),
        known=known,
    )


def read_message(message: Any, names: Mapping[str, str] | None = None) -> ModelResponse:
    """The response of a whole message. Raises ProviderError when it is none."""
    content = mapping_of(message).get("content")
    if not isinstance(content, list):
        raise unusable(VENDOR, "the answer holds no message", started=False)
    assembly = Assembly(names)
    assembly.feed({"type": "message_start", "message": message})
    assembly.feed({"type": "message_delta", "delta": {"stop_reason": message.get("stop_reason")}})
    for index, block in enumerate(content):
        assembly.open(index, mapping_of(block))
    assembly.feed({"type": "message_stop"})
    return assembly.finish()
