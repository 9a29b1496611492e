"""Answers and errors in the Messages API's form: JSON, and event-stream frames that are built once and kept."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tests.scripted.answers import Answer, Block
from tests.scripted.anthropic_params import estimated_tokens
from tests.scripted.conversation import Conversation
from tests.scripted.models import anthropic_model
from tests.scripted.refusals import Refused
from tests.scripted.signing import redact, sign

Json = Any

FAULTS: dict[str, tuple[int, str, str]] = {
    "bad_request": (400, "invalid_request_error", "The request is invalid."),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "billing": (402, "billing_error", "There is a problem with your billing."),
    "no_credit": (
        400, "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to purchase credits.",
    ),
    "permission": (403, "permission_error", "Your API key does not have permission to use the specified resource."),
    "not_found": (404, "not_found_error", "Not found"),
    "timeout": (408, "timeout_error", "Request timed out"),
    "conflict": (409, "invalid_request_error", "Conflict"),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "prompt_too_long": (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    "rate_limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "quota": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "server": (500, "api_error", "Internal server error"),
    "bad_gateway": (502, "api_error", "Bad gateway"),
    "gateway_timeout": (504, "timeout_error", "Gateway timeout"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}  # fmt: skip
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


class AnthropicErrors:
    """Anthropic's error shapes."""

    def error_body(self, error: Refused) -> Json:
        body = {"type": "error", "error": {"type": error.kind, "message": error.message}}
        return {**body, "request_id": f"req_{secrets.token_hex(12)}"}

    def error_frame(self, error: Refused) -> bytes:
        return frame("error", {"type": "error", "error": {"type": error.kind, "message": error.message}})

    def fault(self, answer: Answer) -> Refused:
        status, kind, message = FAULTS[answer.fault or "overloaded"]
        return Refused(answer.message or message, status=status, kind=kind)


def frame(event: str, data: Mapping[str, Json]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "backslashreplace")


def new_id(prefix: str) -> str:
    return f"{prefix}_01{secrets.token_urlsafe(16).replace('-', 'A').replace('_', 'B')[:22]}"


# --- a whole message ------------------------------------------------------------------------------


def message(answer: Answer, conversation: Conversation) -> dict[str, Json]:
    """The answer as one Message object."""
    blocks = [content_block(block, conversation) for block in answer.blocks]
    body = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": blocks,
        "stop_reason": stop_reason(answer),
        "stop_sequence": None,
    }
    found = usage(answer, conversation)
    return body if found is None else {**body, "usage": found}


def stop_reason(answer: Answer) -> str:
    called = any(block.type == "tool_use" for block in answer.blocks)
    return answer.stop_reason or ("tool_use" if called else "end_turn")


def usage(answer: Answer, conversation: Conversation) -> Mapping[str, Json] | None:
    """The usage object of an answer; None when the script leaves it out."""
    if answer.usage == "missing":
        return None
    if isinstance(answer.usage, Mapping):
        return answer.usage
    output = sum(len(block.text) + len(block.name) for block in answer.blocks) // 4 + 1
    return {
        "input_tokens": estimated_tokens(conversation.body),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "service_tier": "standard",
    }


def content_block(block: Block, conversation: Conversation) -> Json:
    """A block as it stands in a Message. Arguments that are no JSON object become {"INVALID_JSON": text}."""
    if block.type == "thinking":
        shown = shown_thinking(block.text, conversation)
        return {"type": "thinking", "thinking": shown, "signature": signature(block, shown)}
    if block.type == "redacted_thinking":
        return {"type": "redacted_thinking", "data": redact()}
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "tool_use":
        return {"type": "tool_use", "id": call_id(block), "name": block.name, "input": arguments(block.text)}
    return dict(block.raw or {})


def arguments(text: str) -> Json:
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {"INVALID_JSON": text}


def call_id(block: Block) -> str:
    return new_id("toolu") if block.id is None else block.id


def signature(block: Block, shown: str) -> str:
    return sign(shown) if block.signature is None else block.signature


def shown_thinking(text: str, conversation: Conversation) -> str:
    """The thinking, or "" where the model does not show it unless asked to."""
    model = anthropic_model(conversation.model)
    display = (conversation.body.get("thinking") or {}).get("display")
    by_default = "summarized" if model is None or model.thinking_shown else "omitted"
    return "" if (display or by_default) == "omitted" else text


# --- an event stream ------------------------------------------------------------------------------


def frames(answer: Answer, conversation: Conversation) -> list[bytes]:
    """The answer as event-stream frames, the script's own events among them."""
    final = usage(answer, conversation)
    result = [start_frame(conversation, final)]
    for index, block in enumerate(answer.blocks):
        result += block_frames(block, index, answer.delta_size, conversation)
        if index == 0:
            result.insert(2, PING)
    delta: dict[str, Json] = {
        "type": "message_delta", "delta": {"stop_reason": stop_reason(answer), "stop_sequence": None}
    }  # fmt: skip
    if final is not None:
        delta["usage"] = final
    result += [frame("message_delta", delta), b'event: message_stop\ndata: {"type": "message_stop"}\n\n']
    for place, name, data in answer.events:
        result.insert(place, frame(name, data))
    return result


def start_frame(conversation: Conversation, final: Mapping[str, Json] | None) -> bytes:
    body: dict[str, Json] = {
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": conversation.model, "content": [],
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip
    if final is not None:
        body["usage"] = {**final, "output_tokens": min(1, final.get("output_tokens", 1))}
    return frame("message_start", {"type": "message_start", "message": body})


def block_frames(block: Block, index: int, size: int, conversation: Conversation) -> Iterator[bytes]:
    """Start, deltas and stop of one block."""
    if block.type == "thinking":
        shown = shown_thinking(block.text, conversation)
        pieces = block.pieces if block.pieces is not None and shown else cut(shown, size)
        yield from deltas(index, "thinking", '{"type": "thinking", "thinking": "", "signature": ""}', pieces)
        yield delta_frame(index, {"type": "signature_delta", "signature": signature(block, shown)})
    elif block.type == "text":
        pieces = cut(block.text, size) if block.pieces is None else block.pieces
        yield from deltas(index, "text", '{"type": "text", "text": ""}', pieces)
    elif block.type == "tool_use":
        start = {"type": "tool_use", "id": call_id(block), "name": block.name, "input": {}}
        pieces = ("", *cut(block.text, size)) if block.pieces is None else block.pieces
        yield from deltas(index, "partial_json", json.dumps(start), pieces)
    else:
        start = content_block(block, conversation)
        yield frame("content_block_start", {"type": "content_block_start", "index": index, "content_block": start})
    yield frame("content_block_stop", {"type": "content_block_stop", "index": index})


def cut(text: str, size: int) -> tuple[str, ...]:
    return tuple(text[start : start + size] for start in range(0, len(text), max(size, 1)))


DELTA_TYPES = {"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}


@lru_cache(maxsize=512)
def deltas(index: int, name: str, start: str, pieces: tuple[str, ...]) -> tuple[bytes, ...]:
    """The start and the deltas of a block; the same block costs nothing the second time."""
    first = {"type": "content_block_start", "index": index, "content_block": json.loads(start)}
    kind = DELTA_TYPES[name]
    return (
        frame("content_block_start", first),
        *(delta_frame(index, {"type": kind, name: piece}) for piece in pieces),
    )


def delta_frame(index: int, delta: Mapping[str, Json]) -> bytes:
    return frame("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
