"""Requests and answers in short."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import providers
from agents.providers.base import (
    CallDelta,
    CallPart,
    CallStart,
    ChatMessage,
    Delta,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    ReasoningPart,
    TextDelta,
    TextPart,
    ToolSpec,
)
from agents.providers.calls import Assembly
from agents.providers.lines import Events, load_object

CASES = Path(__file__).resolve().parents[2] / "cases"
CLAUDE = "anthropic/claude-sonnet-4-5-20250929"
ADAPTIVE = "anthropic/claude-opus-4-7"
PLAIN = "anthropic/claude-3-5-haiku-20241022"
GPT = "openai/gpt-4o"
O3 = "openai/o3"
LOCAL = "openai/local-7b"


def tool(name: str, **properties: str) -> ToolSpec:
    """A tool whose parameters are all required; values are JSON types."""
    shapes = {key: {"type": kind} for key, kind in properties.items()}
    return ToolSpec(name, f"Does {name}.", {"type": "object", "properties": shapes, "required": list(properties)})


WEATHER = tool("get_weather", city="string")
DICE = tool("roll_dice_tool", num_sides="integer")


def user(*parts: Any) -> ChatMessage:
    return ChatMessage("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Any) -> ChatMessage:
    return ChatMessage("assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def request(handle: str, *messages: ChatMessage | str, tools: Sequence[ToolSpec] = (), **options: Any) -> ModelRequest:
    model = handle.partition("/")[2]
    said = tuple(user(message) if isinstance(message, str) else message for message in messages)
    return ModelRequest(model, "You help.", said, tuple(tools), **options)


async def stream(handle: str, *messages: ChatMessage | str, **options: Any) -> tuple[list[Delta], ModelResponse]:
    """The deltas and the response of a streamed answer."""
    deltas: list[Delta] = []
    async for item in stream_of(handle, *messages, **options):
        if isinstance(item, ModelResponse):
            return deltas, item
        deltas += item
    raise AssertionError("no response came")


def stream_of(handle: str, *messages: ChatMessage | str, **options: Any) -> providers.Answer:
    provider, _ = providers.for_handle(handle)
    return provider.stream(request(handle, *messages, **options))


async def complete(handle: str, *messages: ChatMessage | str, **options: Any) -> ModelResponse:
    provider, _ = providers.for_handle(handle)
    return await provider.complete(request(handle, *messages, **options))


def calls(response: ModelResponse) -> list[tuple[str, str]]:
    """(name, arguments) of the calls."""
    return [(part.name, part.arguments) for part in response.parts if isinstance(part, CallPart)]


def text(response: ModelResponse) -> str:
    return "".join(part.text for part in response.parts if isinstance(part, TextPart))


def feed(assembly: Assembly, data: bytes, *, size: int = 1) -> list[Delta]:
    """The deltas of an event stream that arrives ``size`` bytes at a time."""
    events = Events()
    deltas: list[Delta] = []
    for at in range(0, len(data), size):
        for found in events.feed(data[at : at + size]):
            deltas += assembly.feed(_event(found))
    for found in events.rest():
        deltas += assembly.feed(_event(found))
    return deltas


def _event(data: str) -> Any:
    return {"done": True} if data == "[DONE]" else load_object(data) or {}


def assert_same(deltas: Sequence[Delta], response: ModelResponse, *, cut: bool = False) -> None:
    """What was streamed is what stands in the response; ``cut``: calls that were cut off are not in it."""
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert said == text(response)
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert thought == "".join(part.text for part in response.parts if isinstance(part, ReasoningPart))
    begun = [delta for delta in deltas if isinstance(delta, CallStart)]
    assert [start.index for start in begun] == list(range(len(begun)))
    found = [part for part in response.parts if isinstance(part, CallPart)]
    assert cut or len(begun) == len(found)
    for start, call in zip(begun, found, strict=False):
        assert (start.id, start.name) == (call.id, call.name)
        pieces = [delta.text for delta in deltas if isinstance(delta, CallDelta) and delta.index == start.index]
        assert "".join(pieces) == call.arguments
    assert len({part.id for part in found}) == len(found)
    assert all(part.id for part in found)
