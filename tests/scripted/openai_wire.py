"""Answers and errors in the chat completions form: JSON, and event-stream frames that are built once and kept."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tests.scripted.answers import Answer, Block
from tests.scripted.conversation import Conversation
from tests.scripted.openai_params import estimated_tokens
from tests.scripted.refusals import Refused

Json = Any

FAULTS: dict[str, tuple[int, str, str | None, str]] = {
    "bad_request": (400, "invalid_request_error", None, "The request is invalid."),
    "authentication": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-test."),
    "billing": (402, "billing_error", "billing_not_active", "Your account is not active."),
    "no_credit": (
        429, "insufficient_quota", "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "permission": (403, "invalid_request_error", None, "You have insufficient permissions for this operation."),
    "not_found": (404, "invalid_request_error", None, "Not found"),
    "timeout": (408, "server_error", "timeout", "Request timed out."),
    "conflict": (409, "invalid_request_error", None, "Conflict"),
    "too_large": (413, "invalid_request_error", None, "Request too large"),
    "prompt_too_long": (
        400, "invalid_request_error", "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.",
    ),
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    "server": (500, "server_error", None, "The server had an error while processing your request. Sorry about that!"),
    "bad_gateway": (502, "server_error", None, "Bad gateway"),
    "gateway_timeout": (504, "server_error", None, "Gateway timeout"),
    "overloaded": (503, "server_error", None, "That model is currently overloaded with other requests."),
}  # fmt: skip
DONE = b"data: [DONE]\n\n"


class OpenAIErrors:
    """OpenAI's error shape."""

    def error_body(self, error: Refused) -> Json:
        return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}

    def error_frame(self, error: Refused) -> bytes:
        return frame(self.error_body(error))

    def fault(self, answer: Answer) -> Refused:
        status, kind, code, message = FAULTS[answer.fault or "overloaded"]
        return Refused(answer.message or message, status=status, kind=kind, code=code)


def frame(data: Mapping[str, Json]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "backslashreplace")


def new_id(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(12)}"


# --- a whole completion ---------------------------------------------------------------------------


def completion(answer: Answer, conversation: Conversation) -> dict[str, Json]:
    """The answer as one chat completion."""
    choice = {"index": 0, "message": said(answer), "logprobs": None, "finish_reason": finish_reason(answer)}
    body = {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": conversation.model,
        "choices": [choice],
        "service_tier": "default",
        "system_fingerprint": None,
    }
    found = usage(answer, conversation)
    return body if found is None else {**body, "usage": found}


def said(answer: Answer) -> dict[str, Json]:
    """The assistant message: texts joined, thinking as reasoning_content, calls in order."""
    written = "".join(block.text for block in answer.blocks if block.type == "text")
    reasoning = "".join(block.text for block in answer.blocks if block.type == "thinking")
    calls = [tool_call(block) for block in answer.blocks if block.type == "tool_use"]
    message: dict[str, Json] = {"role": "assistant", "content": written or None, "refusal": None, "annotations": []}
    if not calls and not written:
        message["content"] = ""
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def tool_call(block: Block) -> dict[str, Json]:
    return {"id": call_id(block), "type": "function", "function": {"name": block.name, "arguments": block.text}}


def call_id(block: Block) -> str:
    return new_id("call_") if block.id is None else block.id


def finish_reason(answer: Answer) -> str:
    called = any(block.type == "tool_use" for block in answer.blocks)
    return answer.stop_reason or ("tool_calls" if called else "stop")


def usage(answer: Answer, conversation: Conversation) -> Mapping[str, Json] | None:
    """The usage object of an answer; None when the script leaves it out."""
    if answer.usage == "missing":
        return None
    if isinstance(answer.usage, Mapping):
        return answer.usage
    sent = estimated_tokens(conversation.body)
    output = sum(len(block.text) + len(block.name) for block in answer.blocks) // 4 + 1
    reasoning = sum(len(block.text) for block in answer.blocks if block.type == "thinking") // 4
    return {
        "prompt_tokens": sent,
        "completion_tokens": output,
        "total_tokens": sent + output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


# --- an event stream ------------------------------------------------------------------------------


def frames(answer: Answer, conversation: Conversation) -> list[bytes]:
    """The answer as event-stream frames, the script's own events among them, ``[DONE]`` last."""
    common = json.dumps({"id": new_id("chatcmpl-"), "created": int(time.time()), "model": conversation.model})
    wants_usage = (conversation.body.get("stream_options") or {}).get("include_usage") is True
    result = [chunk(common, {"role": "assistant", "content": "", "refusal": None})]
    calls = 0
    for block in answer.blocks:
        if block.type == "tool_use":
            result += call_frames(common, block, calls, answer.delta_size)
            calls += 1
        elif block.type in ("text", "thinking"):
            name = "content" if block.type == "text" else "reasoning_content"
            result += [chunk(common, {name: piece}) for piece in pieces_of(block, answer.delta_size)]
        elif block.raw is not None:
            result.append(frame(block.raw))
    result.append(chunk(common, {}, finish_reason(answer)))
    found = usage(answer, conversation)
    if wants_usage and found is not None:
        result.append(frame({**json.loads(common), "object": "chat.completion.chunk", "choices": [], "usage": found}))
    for place, name, data in answer.events:
        result.insert(place, f"event: {name}\n".encode() + frame(data) if name else frame(data))
    return [*result, DONE]


def pieces_of(block: Block, size: int) -> tuple[str, ...]:
    if block.pieces is not None:
        return block.pieces
    return tuple(block.text[start : start + size] for start in range(0, len(block.text), max(size, 1)))


def call_frames(common: str, block: Block, index: int, size: int) -> Iterator[bytes]:
    """The first delta of a call has its id and name, the others pieces of the arguments."""
    start = {
        "index": index,
        "id": call_id(block),
        "type": "function",
        "function": {"name": block.name, "arguments": ""},
    }
    yield chunk(common, {"tool_calls": [start]})
    for piece in pieces_of(block, size):
        yield chunk(common, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def chunk(common: str, delta: Mapping[str, Json], finish: str | None = None) -> bytes:
    """One chat.completion.chunk. ``common`` is the JSON text of what all chunks of the answer share."""
    return b"data: " + common[:-1].encode() + b", " + choice_text(json.dumps(delta, ensure_ascii=False), finish)


@lru_cache(maxsize=4096)
def choice_text(delta: str, finish: str | None) -> bytes:
    end = json.dumps(finish)
    choice = f'{{"index": 0, "delta": {delta}, "logprobs": null, "finish_reason": {end}}}'
    return f'"object": "chat.completion.chunk", "choices": [{choice}]}}\n\n'.encode("utf-8", "backslashreplace")
