"""The Messages side, driven by the real anthropic SDK."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.scripted.answers import (
    Answer,
    answer,
    dropped,
    fault,
    hang,
    raw,
    redacted,
    text,
    thinking,
    tokens,
    tool_use,
    unknown_block,
)
from tests.scripted.server import ScriptedProvider

SEED = (
    "This is an automated test message. Call the get_secret_code_tool 3 times in parallel for the following inputs: "
    "'hello world', 'hello letta', 'hello test', and also call the roll_dice_tool once with a 16-sided dice."
)
SINGLE = "This is an automated test message. Call the get_secret_code_tool to get the code for text 'hello world'."
SPLIT = (
    'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],'
    '"usage":{"input_tokens":5,"output_tokens":1}}}\n\n'
    'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"café 😀"}}\n\n'
    'data: {"type":"content_block_stop","index":0}\n\n'
    'data: {"type":"message_stop"}\n\n'
)


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


def named(stream: str) -> bytes:
    """The stream with an ``event:`` line before each ``data:`` line."""
    return re.sub(r'data: {"type":"(\w+)"', r"event: \1\n\g<0>", stream).encode()


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


FAULTS = [
    ("rate_limit", anthropic.RateLimitError, 429),
    ("overloaded", anthropic.InternalServerError, 529),
    ("server", anthropic.InternalServerError, 500),
    ("timeout", anthropic.APIStatusError, 408),
    ("authentication", anthropic.AuthenticationError, 401),
    ("billing", anthropic.APIStatusError, 402),
    ("no_credit", anthropic.BadRequestError, 400),
    ("too_large", anthropic.APIStatusError, 413),
    ("prompt_too_long", anthropic.BadRequestError, 400),
]


@pytest.mark.parametrize(("kind", "error", "status"), FAULTS)
def test_it_fails_with_the_vendors_errors(
    provider: ScriptedProvider,
    client: anthropic.Anthropic,
    kind: Any,
    error: type[anthropic.APIStatusError],
    status: int,
) -> None:
    provider.script("", fault(kind, retry_after=2))
    with pytest.raises(error) as caught:
        ask(client, "hi")
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "2"
    assert caught.value.response.json()["type"] == "error"
    assert provider.refused == []


BROKEN = [
    (dropped(), anthropic.APIConnectionError),
    (answer(text("half"), cut_at_event=4), Exception),
    (answer(text("half"), cut_at_byte=200), Exception),
    (answer(text("half an answer"), error_at=4), anthropic.APIStatusError),
]


@pytest.mark.parametrize(("told", "error"), BROKEN)
def test_it_breaks_in_mid_stream(
    provider: ScriptedProvider, client: anthropic.Anthropic, told: Answer, error: type[Exception]
) -> None:
    provider.script("", told)
    with pytest.raises(error):
        ask(client, "hi", streamed=True)


@pytest.mark.parametrize("kind", ["invalid_json", "html", "empty_body"])
def test_it_answers_200_with_something_else(provider: ScriptedProvider, client: anthropic.Anthropic, kind: Any) -> None:
    provider.script("", fault(kind))
    found = client.messages.with_raw_response.create(**PLAIN, messages=[{"role": "user", "content": "x"}])
    assert found.status_code == 200
    with pytest.raises(ValueError):
        json.loads(found.text())


def test_it_hangs_until_the_client_leaves(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", hang())
    with pytest.raises(anthropic.APITimeoutError):
        ask(client.with_options(timeout=0.2), "hi")
    assert len(provider.await_outcome("gone")) == 1


def test_it_holds_an_answer_until_it_is_released(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(text("one two three"), delta_size=4, hold="gate", hold_at=4))
    seen: list[str] = []
    with client.messages.stream(**PLAIN, messages=[{"role": "user", "content": "hi"}]) as stream:
        for piece in stream.text_stream:
            seen.append(piece)
            if len(seen) == 1:
                provider.await_held("gate")
                assert provider.requests[0].outcome == "open"
                provider.release("gate")
    assert "".join(seen) == "one two three"


def test_it_streams_at_the_pace_that_it_is_told(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(tokens(50), delay=4, first_byte=50))
    started = time.monotonic()
    assert ask(client, "hi", streamed=True).content[0].text == "tok " * 50
    assert time.monotonic() - started >= 0.05 + 50 * 0.004
    assert provider.requests[0].events == 50 + 6


def test_it_notices_a_client_that_leaves_in_mid_stream(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(tokens(1000), delay=5))
    with client.messages.stream(**PLAIN, messages=[{"role": "user", "content": "hi"}]) as stream:
        next(iter(stream.text_stream))
    (entry,) = provider.await_outcome("gone")
    assert 0 < entry.events < 1000


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


@pytest.mark.parametrize("pace", [0, 1])
def test_it_sends_recorded_bytes_one_at_a_time(
    provider: ScriptedProvider, client: anthropic.Anthropic, pace: int
) -> None:
    provider.script("", raw(named(SPLIT), pace=pace))
    assert ask(client, "hi", streamed=True).content[0].text == "café 😀"


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
