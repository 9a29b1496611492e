"""A request in the words of chat completions; pure. ``Traits`` say what the model takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelRequest,
    ReasoningPart,
    ResultPart,
    TextPart,
    ToolSpec,
)
from agents.providers.ids import WireIds, wire_name
from agents.providers.images import with_images
from agents.providers.lines import load_object
from agents.providers.openai.strict import strict_schema
from agents.providers.openai.traits import Traits, plain_name

PROVIDER = "openai"
LONGEST_ID = 40
CHOICES = {"auto": "auto", "any": "required", "none": "none"}

Wire = dict[str, Any]


def to_wire(request: ModelRequest, traits: Traits) -> Wire:
    """The body of a chat completion, without ``stream``."""
    request = with_images(request, traits.images)
    wire: Wire = {
        "model": request.model,
        "messages": _messages(request, traits),
        traits.limit: max(1, request.max_tokens),
        **_tools(request, traits),
    }
    if request.temperature is not None:
        wire["temperature"] = request.temperature
    if effort := _effort(request, traits):
        wire["reasoning_effort"] = effort
    if request.response_format:
        wire["response_format"] = request.response_format
    return {name: value for name, value in wire.items() if name not in traits.left_out}


def streamed(wire: Wire, traits: Traits) -> Wire:
    """The same call, streamed, with usage in the last chunk where the server takes the wish."""
    options = {} if "stream_options" in traits.left_out else {"stream_options": {"include_usage": True}}
    return wire | {"stream": True} | options


def _effort(request: ModelRequest, traits: Traits) -> str:
    """How much to think: as the agent says; turned off as far as the model goes; else the model's own default."""
    if not traits.reasoning:
        return ""
    if request.reasoning is not False:
        return request.reasoning_effort
    name = plain_name(request.model)
    return "low" if name.startswith("o") else "minimal" if name.startswith("gpt-5") and "gpt-5." not in name else "none"


# --- tools ----------------------------------------------------------------------------------------


def _tools(request: ModelRequest, traits: Traits) -> Wire:
    if not request.tools:
        return {}
    choice: Any = CHOICES.get(request.tool_choice.kind)
    if request.tool_choice.kind == "tool":
        choice = {"type": "function", "function": {"name": wire_name(request.tool_choice.name)}}
    if choice not in ("auto", "none") and not traits.forced:
        choice = "auto"
    return {
        "tools": [_tool(tool, traits) for tool in request.tools],
        "tool_choice": choice,
        "parallel_tool_calls": request.parallel_tool_calls,
    }


def _tool(tool: ToolSpec, traits: Traits) -> Wire:
    function: Wire = {
        "name": wire_name(tool.name),
        "parameters": {"type": "object", "properties": {}, **tool.parameters},
    }
    if tool.description.strip():
        function["description"] = tool.description
    strict = strict_schema(tool.parameters) if tool.strict and traits.strict else None
    if strict is not None:
        function |= {"parameters": strict, "strict": True}
    return {"type": "function", "function": function}


# --- messages -------------------------------------------------------------------------------------


def _messages(request: ModelRequest, traits: Traits) -> list[Wire]:
    ids = WireIds(request.messages, longest=LONGEST_ID)
    wires: list[Wire] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    for message in request.messages:
        made = _assistant(message, ids, traits) if message.role == "assistant" else _user(message, ids)
        wires.extend(made)
    return wires


def _assistant(message: ChatMessage, ids: WireIds, traits: Traits) -> Iterator[Wire]:
    text = "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart) and part.text.strip())
    calls = [_call(part, ids) for part in message.parts if isinstance(part, CallPart)]
    if not text and not calls:
        return
    wire: Wire = {"role": "assistant", "content": text or None}
    if calls:
        wire["tool_calls"] = calls
    thought = "".join(p.text for p in message.parts if isinstance(p, ReasoningPart) and p.provider == PROVIDER)
    if traits.echo and thought:
        wire["reasoning_content"] = thought
    yield wire


def _call(part: CallPart, ids: WireIds) -> Wire:
    arguments = part.arguments if load_object(part.arguments) is not None else "{}"
    return {
        "id": ids.of_call(part.id),
        "type": "function",
        "function": {"name": wire_name(part.name), "arguments": arguments},
    }


def _user(message: ChatMessage, ids: WireIds) -> Iterator[Wire]:
    """All results first, each a message of its own; then what they and the user show and say, in one message."""
    shown: list[Wire] = []
    for part in message.parts:
        if isinstance(part, ResultPart):
            wire_id = ids.of_result(part.id)
            text = "\n".join(inner.text for inner in part.parts if isinstance(inner, TextPart))
            images = [_image(inner) for inner in part.parts if isinstance(inner, ImagePart)]
            if images:
                shown += [{"type": "text", "text": f"Images of the result of tool call {wire_id}:"}, *images]
                text = text or "The result is in the images that follow."
            yield {"role": "tool", "tool_call_id": wire_id, "content": text}
    shown += [_said(part) for part in message.parts if isinstance(part, ImagePart) or _is_said(part)]
    if shown:
        texts = [block.get("text", "") for block in shown]
        yield {"role": "user", "content": "\n\n".join(texts) if all(texts) else shown}


def _is_said(part: object) -> bool:
    return isinstance(part, TextPart) and bool(part.text.strip())


def _said(part: Any) -> Wire:
    return _image(part) if isinstance(part, ImagePart) else {"type": "text", "text": part.text}


def _image(part: ImagePart) -> Wire:
    url = f"data:{part.media_type};base64,{part.data}" if part.data else part.url
    return {"type": "image_url", "image_url": {"url": url}}
