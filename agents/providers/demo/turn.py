"""What the demo model answers to a conversation: reads the turn, plans its calls, quotes results; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelRequest,
    ModelResponse,
    Part,
    ReasoningPart,
    ResultPart,
    StopReason,
    TextPart,
    ToolSpec,
    Usage,
)
from agents.providers.demo.wishes import Wish, arguments, missing, wishes
from agents.providers.lines import load_object, text_of

PROVIDER = "demo"
HONEST = "I am lettaweb's demo model: a few rules, no language model."
WHO = "Demo model:"
SILENT = ("heartbeat", "login", "system_alert")
SPEAKER = "send_message"
MAX_QUOTE = 1000
TOKEN = 4  # characters


@dataclass(slots=True)
class Turn:
    """What happened since the user last spoke. ``said`` is the user's text, ``results`` are in call order."""

    said: str = ""
    images: int = 0
    calls: list[CallPart] = field(default_factory=list)
    results: list[ResultPart] = field(default_factory=list)
    heard: bool = False  # the last message holds results


def answer(request: ModelRequest) -> ModelResponse:
    """The whole answer to a request."""
    turn = read_turn(request.messages)
    planned = _planned(request, turn)
    calls = [CallPart(f"call_{uuid4().hex[:24]}", wish.tool.name, json.dumps(wish.arguments)) for wish in planned]
    text = _said(request, turn, planned)
    if not calls and text and _speaks_by_tool(request, turn):
        calls, text = [_message(request, text)], ""
    bound = max(1, request.max_tokens) * TOKEN
    cut = len(text) > bound
    parts: list[Part] = []
    if request.reasoning is not False:
        parts.append(ReasoningPart(_thought(turn, planned), "", PROVIDER))
    if text:
        parts.append(TextPart(text[:bound]))
    stop: StopReason = "max_tokens" if cut else "tool_use" if calls else "end_turn"
    whole = (*parts, *([] if cut else calls))
    return ModelResponse(whole, stop, _usage(request, whole), vendor_stop=stop)


def read_turn(messages: Sequence[ChatMessage]) -> Turn:
    """The turn that the conversation is in."""
    turn = Turn()
    for message in messages:
        said = "\n".join(text for part in message.parts if isinstance(part, TextPart) and (text := spoken(part.text)))
        if message.role == "user" and said:
            turn = Turn(said)
        turn.images += sum(isinstance(part, ImagePart) for part in message.parts) if message.role == "user" else 0
        turn.calls += [part for part in message.parts if isinstance(part, CallPart)]
        results = [part for part in message.parts if isinstance(part, ResultPart)]
        turn.results += results
        turn.heard = bool(results)
    return turn


def spoken(text: str) -> str:
    """What a person said in a message: memgpt agents pack it in JSON, beside events that nobody said."""
    packed = load_object(text) if text.lstrip().startswith("{") else None
    if packed is None:
        return text.strip()
    if packed.get("type") in SILENT:
        return ""
    return text_of(packed.get("message")).strip() or text.strip()


# --- calls ----------------------------------------------------------------------------------------


def _planned(request: ModelRequest, turn: Turn) -> list[Wish]:
    """The calls to make now: those asked for that this turn has not made, or the one that is forced."""
    if request.tool_choice.kind == "none" or not request.tools:
        return []
    asked = wishes(turn.said, request.tools)
    for call in turn.calls:
        done = next((wish for wish in asked if wish.tool.name == call.name), None)
        if done:
            asked.remove(done)
    asked = asked or _forced(request, turn)
    if request.tool_choice.kind == "tool":
        asked = [wish for wish in asked if wish.tool.name == request.tool_choice.name] or _forced(request, turn)
    return asked if request.parallel_tool_calls else asked[:1]


def _forced(request: ModelRequest, turn: Turn) -> list[Wish]:
    if request.tool_choice.kind not in ("any", "tool"):
        return []
    by_name = {tool.name: tool for tool in request.tools}
    tool = by_name.get(request.tool_choice.name) or by_name.get(SPEAKER) or request.tools[0]
    if tool.name == SPEAKER:
        return [Wish(tool, _message_arguments(tool, _said(request, turn, [])))]
    return [Wish(tool, arguments(tool, turn.said))]


def _speaks_by_tool(request: ModelRequest, turn: Turn) -> bool:
    """Whether a text has to go out through a tool: it is on offer and has not been used in this turn."""
    offered = any(tool.name == SPEAKER for tool in request.tools) and request.tool_choice.kind != "none"
    return offered and not any(call.name == SPEAKER for call in turn.calls)


def _message(request: ModelRequest, text: str) -> CallPart:
    tool = next(tool for tool in request.tools if tool.name == SPEAKER)
    return CallPart(f"call_{uuid4().hex[:24]}", SPEAKER, json.dumps(_message_arguments(tool, text)))


def _message_arguments(tool: ToolSpec, text: str) -> Mapping[str, object]:
    return {**arguments(tool, ""), "message": text}


# --- words ----------------------------------------------------------------------------------------


def _said(request: ModelRequest, turn: Turn, planned: Sequence[Wish]) -> str:
    """The text of the answer: news first, then what comes next."""
    names = {call.id: call.name for call in turn.calls}
    told = {call.id for call in turn.calls if call.name == SPEAKER}
    fresh = _latest(request.messages) if planned else turn.results
    lines = [_quoted(names.get(result.id, "tool"), result) for result in fresh if result.id not in told]
    if planned:
        called = f"I call {_listed([wish.tool.name for wish in planned])}, as asked."
        return "\n".join([WHO, *lines, called])
    if told and turn.heard:
        return "\n".join([WHO, *lines]) if lines else ""
    lines += [f"There is no tool named {name} for me to call." for name in missing(turn.said, request.tools)]
    return "\n".join([WHO, *lines] if turn.heard else [HONEST, *lines, *_echo(request, turn)])


def _latest(messages: Sequence[ChatMessage]) -> list[ResultPart]:
    return [part for part in messages[-1].parts if isinstance(part, ResultPart)] if messages else []


def _quoted(name: str, result: ResultPart) -> str:
    text = " ".join(part.text for part in result.parts if isinstance(part, TextPart)).strip()
    images = sum(isinstance(part, ImagePart) for part in result.parts)
    shown = f"“{text[:MAX_QUOTE]}”" if text else "nothing"
    seen = f" and {images} image(s) that I cannot see" if images else ""
    return f"{name} did not go through: {shown}{seen}" if result.is_error else f"{name} returned {shown}{seen}"


def _echo(request: ModelRequest, turn: Turn) -> list[str]:
    lines = [f"You wrote: “{turn.said[:MAX_QUOTE]}”"] if turn.said else []
    if turn.images:
        lines.append(f"I cannot see the {turn.images} image(s) that you sent.")
    offered = [tool.name for tool in request.tools if tool.name != SPEAKER]
    if offered:
        lines.append(f"Name a tool and I call it: {_listed(offered)}.")
    return lines


def _thought(turn: Turn, planned: Sequence[Wish]) -> str:
    if planned:
        return f"The message asks for {_listed([wish.tool.name for wish in planned])}. I call what it names."
    if turn.heard:
        return "The tools have answered. I pass on what they returned."
    return "The message names no tool on offer. I say what I am and repeat it."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _usage(request: ModelRequest, parts: Sequence[Part]) -> Usage:
    """Sizes in characters by four, for the demo has no tokens."""
    sent = len(request.system) + sum(_size(part) for message in request.messages for part in message.parts)
    sent += sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in request.tools)
    thought = sum(_size(part) for part in parts if isinstance(part, ReasoningPart))
    said = sum(map(_size, parts))
    return Usage(input=-(-sent // TOKEN), output=-(-said // TOKEN), reasoning=thought // TOKEN)


def _size(part: Part) -> int:
    if isinstance(part, TextPart | ReasoningPart):
        return len(part.text)
    if isinstance(part, CallPart):
        return len(part.name) + len(part.arguments)
    return sum(map(_size, part.parts)) if isinstance(part, ResultPart) else 0
