"""One view of both vendors' requests: what the default model and the script's markers look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Json = Any


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result in the last message: the tool's name, the call's id and the text, images left out."""

    name: str
    id: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class Conversation:
    """What a request asks. ``user`` is the text of the last message's own words, "" when it has only results.

    ``forced`` is "" (free), "any", or the name of a tool; ``calls`` whether tools may be called at all.
    """

    api: str
    body: Mapping[str, Json]
    key: str = ""
    user: str = ""
    results: tuple[Result, ...] = ()
    tools: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    thinking: bool = False
    forced: str = ""
    calls: bool = True
    parallel: bool = True

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @cached_property
    def haystack(self) -> str:
        """Every text of the request and the API key, for markers."""
        return "\n".join([self.key, *texts(self.body)])


def texts(value: Json) -> Iterator[str]:
    """Every string in a JSON value, and every number as its text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif value is not None:
        yield json.dumps(value)


def plain_text(content: Json) -> str:
    """The text of a content: a string, or a list of blocks of which the text ones count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


# --- Anthropic ------------------------------------------------------------------------------------


def from_anthropic(body: Mapping[str, Json], key: str) -> Conversation:
    """The view of an accepted Messages request."""
    messages = body["messages"]
    blocks = _last_user_blocks(messages)
    names = {block["id"]: block["name"] for block in _blocks(messages) if block.get("type") == "tool_use"}
    results = [block for block in blocks if block.get("type") == "tool_result"]
    choice = body.get("tool_choice") or {}
    return Conversation(
        api="anthropic",
        body=body,
        key=key,
        user=plain_text(blocks),
        results=tuple(_anthropic_result(block, names) for block in results),
        tools={tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools", [])},
        thinking=(body.get("thinking") or {}).get("type") in ("enabled", "adaptive"),
        forced={"any": "any", "tool": choice.get("name", "")}.get(choice.get("type", ""), ""),
        calls=choice.get("type") != "none",
        parallel=not choice.get("disable_parallel_tool_use", False),
    )


def _anthropic_result(block: Mapping[str, Json], names: Mapping[str, str]) -> Result:
    call = block["tool_use_id"]
    return Result(names.get(call, ""), call, plain_text(block.get("content", "")), bool(block.get("is_error")))


def _last_user_blocks(messages: list[Json]) -> list[Mapping[str, Json]]:
    tail: list[Mapping[str, Json]] = []
    for message in reversed(messages):
        if message["role"] != "user":
            break
        tail = list(_blocks([message])) + tail
    return tail


def _blocks(messages: list[Json]) -> Iterator[Mapping[str, Json]]:
    for message in messages:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


# --- OpenAI ---------------------------------------------------------------------------------------


def from_openai(body: Mapping[str, Json], key: str) -> Conversation:
    """The view of an accepted chat completions request."""
    messages = body["messages"]
    tail = _since_assistant(messages)
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    names = {call["id"]: call["function"]["name"] for call in calls}
    choice = body.get("tool_choice")
    named = choice["function"]["name"] if isinstance(choice, Mapping) and "function" in choice else ""
    return Conversation(
        api="openai",
        body=body,
        key=key,
        user="\n".join(plain_text(message.get("content")) for message in tail if message["role"] == "user"),
        results=tuple(_openai_result(message, names) for message in tail if message["role"] == "tool"),
        tools={tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools") or []},
        thinking=str(body.get("model", "")).startswith("deepseek-reason"),
        forced="any" if choice == "required" else named,
        calls=choice != "none",
        parallel=body.get("parallel_tool_calls") is not False,
    )


def _openai_result(message: Mapping[str, Json], names: Mapping[str, str]) -> Result:
    call = message["tool_call_id"]
    text = plain_text(message["content"])
    return Result(names.get(call, ""), call, text, text.startswith("Error"))


def _since_assistant(messages: list[Json]) -> list[Mapping[str, Json]]:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] == "assistant":
            return messages[place + 1 :]
    return messages
