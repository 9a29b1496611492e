"""A request in the words of the Messages API; pure. ``Traits`` say what the model takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.providers.anthropic.traits import Traits
from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelRequest,
    Part,
    ReasoningPart,
    RedactedReasoningPart,
    ResultPart,
    TextPart,
    ToolChoice,
    ToolSpec,
)
from agents.providers.ids import WireIds, wire_name
from agents.providers.images import with_images
from agents.providers.lines import load_object

PROVIDER = "anthropic"
MIN_BUDGET = 1024
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
COMBINED = ("oneOf", "allOf", "anyOf")  # refused at the top of a tool's schema
CACHED = {"type": "ephemeral"}
DATA_URL = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)

Wire = dict[str, Any]


def to_wire(request: ModelRequest, traits: Traits) -> Wire:
    """The body of a Messages call, without ``stream``."""
    request = with_images(_choosable(request, traits), traits.images)
    thinking, active = _thinking(request, traits)
    wire: Wire = {
        "model": request.model,
        "max_tokens": _max_tokens(request, traits, thinking),
        "messages": _messages(request.messages, replay=active and traits.replay),
    }
    if request.system.strip():
        wire["system"] = [{"type": "text", "text": request.system, "cache_control": CACHED}]
    if thinking:
        wire["thinking"] = thinking
    if request.temperature is not None and traits.sampling and not active:
        wire["temperature"] = min(max(request.temperature, 0.0), 1.0)
    wire |= _tools(request)
    if output := _output(request, traits):
        wire["output_config"] = output
    return wire


# --- thinking -------------------------------------------------------------------------------------


def _thinking(request: ModelRequest, traits: Traits) -> tuple[Wire, bool]:
    """What to say of thinking, and whether the model will think."""
    wanted = request.reasoning is not False and traits.thinking != "none" and not _forced(request)
    if wanted and traits.thinking == "budget" and _thoughtless(request.messages, replay=traits.replay):
        wanted = False
    if not wanted and traits.off == "always_on":
        return _adaptive("omitted", traits), True
    if not wanted:
        return ({} if traits.off == "omit" else {"type": traits.off}), False
    if traits.thinking == "adaptive":
        return _adaptive("summarized", traits), True  # shown also where the model leaves it out by default
    return {"type": "enabled", "budget_tokens": max(MIN_BUDGET, request.reasoning_tokens)}, True


def _adaptive(display: str, traits: Traits) -> Wire:
    """Adaptive thinking. Memory edits change the system prompt, to which later models bind stored thinking: then the
    vendor drops what does not fit any more instead of refusing the request."""
    bound = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if traits.binding else {}
    return {"type": "adaptive", "display": display, **bound}


def _thoughtless(messages: Sequence[ChatMessage], *, replay: bool) -> bool:
    """Whether an open tool loop begins without thinking that can go back: with a budget the vendor refuses that."""
    first: ChatMessage | None = None
    for at in range(len(messages) - 1, 0, -2):
        results = [isinstance(part, ResultPart) for part in messages[at].parts]
        if not any(results) or (first is not None and not all(results)):
            break
        first = messages[at - 1]
    if first is None:
        return False
    known = next((part for part in first.parts if not _foreign(part)), None)
    return not (replay and isinstance(known, ReasoningPart | RedactedReasoningPart))


def _foreign(part: Part) -> bool:
    """Whether this is thinking that the vendor would not know again."""
    if isinstance(part, ReasoningPart):
        return part.provider != PROVIDER or not part.signature
    return isinstance(part, RedactedReasoningPart) and (part.provider != PROVIDER or not part.data)


def _max_tokens(request: ModelRequest, traits: Traits, thinking: Wire) -> int:
    """The bound of the answer, raised above the budget; lowers a budget that the model's own bound leaves no room."""
    wanted = max(1, request.max_tokens)
    budget = thinking.get("budget_tokens", 0)
    if wanted <= budget:
        wanted += budget
    if traits.max_output and wanted > traits.max_output:
        wanted = traits.max_output
        if budget >= wanted:
            thinking["budget_tokens"] = max(MIN_BUDGET, wanted - MIN_BUDGET)
    return wanted


def _output(request: ModelRequest, traits: Traits) -> Wire:
    output: Wire = {}
    if traits.thinking == "adaptive" and traits.effort and request.reasoning_effort in EFFORTS:
        output["effort"] = EFFORTS[request.reasoning_effort]
    wanted = request.response_format or {}
    if wanted.get("type") == "json_schema":
        named = wanted.get("json_schema")
        output["format"] = {"type": "json_schema", "schema": named.get("schema") if named else wanted.get("schema")}
    return output


# --- tools ----------------------------------------------------------------------------------------


def _forced(request: ModelRequest) -> bool:
    return bool(request.tools) and request.tool_choice.kind in ("any", "tool")


def _choosable(request: ModelRequest, traits: Traits) -> ModelRequest:
    """The request with a choice that the model takes: where none may be forced, the named tool alone is on offer."""
    if traits.forced or not _forced(request):
        return request
    tools = request.tools
    if request.tool_choice.kind == "tool":
        tools = tuple(tool for tool in tools if tool.name == request.tool_choice.name) or tools
    return replace(request, tools=tools, tool_choice=ToolChoice("auto"))


def _tools(request: ModelRequest) -> Wire:
    """Tools and choice. Calls in the history need tools in the request even when none is on offer."""
    offered = [_tool(tool) for tool in request.tools]
    if not offered:
        names = {part.name for message in request.messages for part in message.parts if isinstance(part, CallPart)}
        past = [_tool(ToolSpec(name, "Not available any more.", {})) for name in sorted(names)]
        return {"tools": past, "tool_choice": {"type": "none"}} if past else {}
    offered[-1]["cache_control"] = CACHED
    choice: Wire = {"type": request.tool_choice.kind}
    if request.tool_choice.kind == "tool":
        choice["name"] = wire_name(request.tool_choice.name)
    if request.tool_choice.kind != "none" and not request.parallel_tool_calls:
        choice["disable_parallel_tool_use"] = True
    return {"tools": offered, "tool_choice": choice}


def _tool(tool: ToolSpec) -> Wire:
    schema = {name: value for name, value in tool.parameters.items() if name not in COMBINED}
    schema = {"properties": {}, **schema, "type": "object"}
    wire: Wire = {"name": wire_name(tool.name), "input_schema": schema}
    if tool.description.strip():
        wire["description"] = tool.description
    return wire


# --- messages -------------------------------------------------------------------------------------


def _messages(messages: Sequence[ChatMessage], *, replay: bool) -> list[Wire]:
    """The messages; what is left out of one never leaves it empty or two of a role side by side."""
    ids = WireIds(messages)
    wires: list[Wire] = []
    for message in messages:
        parts = [*message.parts, *_images_of_errors(message)]
        blocks = [block for part in parts for block in _blocks(part, ids, replay=replay)]
        if not blocks:
            continue
        if wires and wires[-1]["role"] == message.role:
            wires[-1]["content"] += blocks
        else:
            wires.append({"role": message.role, "content": blocks})
    _mark_cached(wires)
    return wires


def _mark_cached(wires: list[Wire]) -> None:
    """Mark the end of the conversation for the prompt cache; thinking cannot carry the mark."""
    last = wires[-1]["content"][-1] if wires else {"type": "thinking"}
    if last["type"] not in ("thinking", "redacted_thinking"):
        last["cache_control"] = CACHED


def _blocks(part: Part, ids: WireIds, *, replay: bool) -> Iterator[Wire]:
    if isinstance(part, TextPart):
        if part.text.strip():
            yield {"type": "text", "text": part.text}
    elif isinstance(part, CallPart):
        called = load_object(part.arguments) or {}
        yield {"type": "tool_use", "id": ids.of_call(part.id), "name": wire_name(part.name), "input": called}
    elif isinstance(part, ResultPart):
        yield _result(part, ids)
    elif isinstance(part, ImagePart):
        yield _image(part)
    elif replay and not _foreign(part):
        yield _thought(part)


def _thought(part: ReasoningPart | RedactedReasoningPart) -> Wire:
    if isinstance(part, RedactedReasoningPart):
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _result(part: ResultPart, ids: WireIds) -> Wire:
    """A result; that of an error holds text alone, and never none."""
    wire: Wire = {"type": "tool_result", "tool_use_id": ids.of_result(part.id)}
    inner = [piece for piece in part.parts if isinstance(piece, TextPart) or not part.is_error]
    content = [block for piece in inner for block in _blocks(piece, ids, replay=False)]
    if part.is_error:
        wire["is_error"] = True
        content = content or [{"type": "text", "text": "The tool failed without a word."}]
    if content:
        wire["content"] = content
    return wire


def _images_of_errors(message: ChatMessage) -> Iterator[ImagePart]:
    """The images of failed calls: they go beside the results, for they may not go into them."""
    for part in message.parts:
        if isinstance(part, ResultPart) and part.is_error:
            yield from (inner for inner in part.parts if isinstance(inner, ImagePart))


def _image(part: ImagePart) -> Wire:
    source: Mapping[str, str] = {"type": "url", "url": part.url}
    inline = DATA_URL.fullmatch(part.url)
    if part.data or inline:
        media_type, data = inline.groups() if inline else (part.media_type, part.data)
        source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}
