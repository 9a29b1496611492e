"""The Messages side, driven by the real anthropic SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.scripted.answers import (
    answer,
    redacted,
    text,
    thinking,
    tool_use,
    unknown_block,
)
from tests.scripted.server import ScriptedProvider

SEED = (
    "This is an automated test message. Call the get_secret_code_tool 3 times in parallel for the following inputs: "
    "'hello world', 'hello letta', 'hello test', and also call the roll_dice_tool once with a 16-sided dice."
)
SINGLE = "This is an automated test message. Call the get_secret_code_tool to get the code for text 'hello world'."


def tool(name: str, **properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": name, "input_schema": {**schema, "required": list(properties)}}


TOOLS = [tool("get_secret_code_tool", input_text="string"), tool("roll_dice_tool", num_sides="integer")]
THINKING = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 2048,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": TOOLS,
}
PLAIN: dict[str, Any] = {"model": "claude-haiku-4-5", "max_tokens": 100}


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(max_retries=0) as made:
        yield made


def ask(client: anthropic.Anthropic, content: str, *, streamed: bool = False, **options: Any) -> Any:
    """The message of a one-message conversation."""
    return send(client, [{"role": "user", "content": content}], streamed=streamed, **options)


def send(client: anthropic.Anthropic, messages: list[Any], *, streamed: bool = False, **options: Any) -> Any:
    arguments: dict[str, Any] = {**PLAIN, **options, "messages": messages}
    if not streamed:
        return client.messages.create(**arguments)
    with client.messages.stream(**arguments) as stream:
        return stream.get_final_message()


def as_sent(message: Any) -> list[dict[str, Any]]:
    return [block.model_dump(exclude_none=True) for block in message.content]


@pytest.mark.parametrize("streamed", [False, True])
def test_it_calls_the_tools_of_the_seed_and_quotes_their_results(
    provider: ScriptedProvider, client: anthropic.Anthropic, streamed: bool
) -> None:
    first = ask(client, SEED, streamed=streamed, **THINKING)
    assert [block.type for block in first.content] == ["thinking", "text", *["tool_use"] * 4]
    assert first.stop_reason == "tool_use"
    calls = [(block.name, block.input) for block in first.content[2:]]
    inputs = ("hello world", "hello letta", "hello test")
    assert calls == [
        *(("get_secret_code_tool", {"input_text": value}) for value in inputs),
        ("roll_dice_tool", {"num_sides": 16}),
    ]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": block.id,
            "content": f"740845635798344975-{place}",
            "is_error": place == 1,
        }
        for place, block in enumerate(first.content[2:])
    ]
    messages = [
        {"role": "user", "content": SEED},
        {"role": "assistant", "content": as_sent(first)},
        {"role": "user", "content": results},
    ]
    second = send(client, messages, streamed=streamed, **THINKING)
    assert [block.type for block in second.content] == ["thinking", "text"]
    assert all(f"740845635798344975-{place}" in second.content[1].text for place in range(4))
    assert provider.refused == []


def test_it_calls_once_without_thinking_when_parallel_use_is_off(client: anthropic.Anthropic) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    found = ask(client, SEED, tools=TOOLS, tool_choice=choice)
    assert [block.type for block in found.content] == ["text", "tool_use"]


@pytest.mark.parametrize(("content", "types"), [(SINGLE, ["text", "tool_use"]), ("Thank you.", ["text"])])
def test_it_calls_only_what_it_is_asked_to(client: anthropic.Anthropic, content: str, types: list[str]) -> None:
    assert [block.type for block in ask(client, content, tools=TOOLS).content] == types


def test_it_plays_the_forced_tool(client: anthropic.Anthropic) -> None:
    tools = [tool("send_message", message="string", request_heartbeat="boolean"), *TOOLS]
    found = ask(client, "Hello there", tools=tools, tool_choice={"type": "any"})
    assert found.content[-1].name == "send_message"
    assert found.content[-1].input == {"message": "Understood. You wrote: Hello there", "request_heartbeat": False}


def test_it_hides_thinking_of_new_models_unless_told_to_show_it(client: anthropic.Anthropic) -> None:
    options: dict[str, Any] = {"model": "claude-opus-4-7", "max_tokens": 100}
    hidden = ask(client, "hi", **options, thinking={"type": "adaptive"})
    shown = ask(client, "hi", **options, thinking={"type": "adaptive", "display": "summarized"})
    assert (hidden.content[0].thinking, hidden.content[0].signature != "") == ("", True)
    assert shown.content[0].thinking
    back = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": as_sent(hidden)}]
    send(client, [*back, {"role": "user", "content": "more"}], **options, thinking={"type": "adaptive"})


@pytest.mark.parametrize("streamed", [False, True])
def test_it_answers_what_the_script_says(
    provider: ScriptedProvider, client: anthropic.Anthropic, streamed: bool
) -> None:
    told = answer(
        redacted(),
        thinking("hmm"),
        text("ü\u2028x"),
        tool_use("f", {"a": "\\u00e9"}, "toolu_mine"),
        usage={"input_tokens": 0, "output_tokens": 0},
    )
    provider.script("marker-one", told)
    found = ask(client, "marker-one", streamed=streamed)
    kinds = [block.type for block in found.content]
    assert kinds == ["redacted_thinking", "thinking", "text", "tool_use"]
    assert (found.content[2].text, found.content[3].id, found.content[3].input) == (
        "ü\u2028x",
        "toolu_mine",
        {"a": "\\u00e9"},
    )
    assert (found.usage.input_tokens, found.usage.output_tokens) == (0, 0)
    assert provider.pending == 0


def test_it_keeps_scripts_of_several_tests_apart(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("blue", answer(text("for blue")))
    provider.script("green", answer(text("for green"), times=2))
    provider.script("green and blue", answer(text("for both")))
    provider.rule(lambda conversation: answer(text("by rule")) if "rule" in conversation.user else None)
    wanted = ["green and blue", "green", "blue", "green", "green", "a rule"]
    found = [ask(client, content).content[0].text for content in wanted]
    plain = "Understood. You wrote: green"
    assert found == ["for both", "for green", "for blue", "for green", plain, "by rule"]


def test_it_sends_what_no_sdk_knows(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    blocks = (text("ok"), unknown_block({"type": "future_block", "z": 3}))
    event = (2, "future_event", {"type": "future_event"})
    provider.script(
        "", answer(*blocks, stop_reason="future_reason", events=(event,)), answer(text("x"), stop_reason="tool_use")
    )
    events = client.messages.create(**PLAIN, messages=[{"role": "user", "content": "a"}], stream=True)
    kinds = [found.type for found in events]
    assert "future_event" in kinds or kinds[-1] == "message_stop"
    assert ask(client, "no tool block").stop_reason == "tool_use"


def test_it_lists_models_in_pages_and_counts_tokens(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    found = list(client.models.list(limit=4))
    assert len({model.id for model in found}) == len(found) > 10
    sonnet = next(model for model in found if model.id == "claude-sonnet-4-5-20250929")
    assert (sonnet.max_input_tokens, sonnet.max_tokens) == (200_000, 64_000)
    assert sonnet.capabilities is not None
    assert sonnet.capabilities.thinking.types.enabled.supported
    assert not sonnet.capabilities.thinking.types.adaptive.supported
    counted = client.messages.count_tokens(model="claude-opus-4-6", messages=[{"role": "user", "content": "x" * 400}])
    assert counted.input_tokens >= 100
    assert [entry.path for entry in provider.generations] == []


def test_it_refuses_strangers(provider: ScriptedProvider) -> None:
    stranger = anthropic.Anthropic(api_key="sk-wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        ask(stranger, "hi")
    assert provider.refused == ["POST /v1/messages: invalid x-api-key"]
