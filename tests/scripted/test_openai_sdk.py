"""The chat completions side, driven by the real openai SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.scripted.answers import answer, fault, raw, text, thinking, tokens, tool_use
from tests.scripted.server import ScriptedProvider
from tests.scripted.test_anthropic_sdk import SEED, TOOLS

FUNCTIONS = [
    {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}} for tool in TOOLS
]


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(max_retries=0) as made:
        yield made


def send(client: openai.OpenAI, messages: list[Any], **options: Any) -> Any:
    arguments: dict[str, Any] = {"model": "gpt-4o", **options, "messages": messages}
    return client.chat.completions.create(**arguments)


def ask(client: openai.OpenAI, content: str, **options: Any) -> Any:
    return send(client, [{"role": "user", "content": content}], **options)


def collected(stream: Any) -> tuple[str, str, dict[int, list[str]], str, Any]:
    """(content, reasoning, index → [id, name, arguments], finish reason, usage) of a stream."""
    content, reasoning, finish, usage = "", "", "", None
    calls: dict[int, list[str]] = {}
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            finish = choice.finish_reason or finish
            for piece in choice.delta.tool_calls or []:
                found = calls.setdefault(piece.index, [piece.id, piece.function.name, ""])
                found[2] += piece.function.arguments
    return content, reasoning, calls, finish, usage


def test_it_calls_the_tools_of_the_seed_and_quotes_their_results(
    provider: ScriptedProvider, client: openai.OpenAI
) -> None:
    first = ask(client, SEED, tools=FUNCTIONS)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert [call.function.name for call in message.tool_calls] == ["get_secret_code_tool"] * 3 + ["roll_dice_tool"]
    answers = [
        {"role": "tool", "tool_call_id": call.id, "content": f"74084-{place}"}
        for place, call in enumerate(message.tool_calls)
    ]
    back = {
        "role": "assistant",
        "content": message.content,
        "tool_calls": [call.model_dump() for call in message.tool_calls],
    }
    second = send(client, [{"role": "user", "content": SEED}, back, *answers], tools=FUNCTIONS)
    assert all(f"74084-{place}" in second.choices[0].message.content for place in range(4))
    assert provider.refused == []


def test_it_streams_calls_in_pieces(client: openai.OpenAI) -> None:
    stream = ask(client, SEED, tools=FUNCTIONS, stream=True, stream_options={"include_usage": True})
    content, _, calls, finish, usage = collected(stream)
    assert (content, finish, len(calls)) == ("I'll do that now.", "tool_calls", 4)
    assert calls[3][1:] == ["roll_dice_tool", '{"num_sides": 16}']
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_it_calls_once_when_parallel_calls_are_off(client: openai.OpenAI) -> None:
    found = ask(client, SEED, tools=FUNCTIONS, parallel_tool_calls=False)
    assert len(found.choices[0].message.tool_calls) == 1


def test_it_streams_reasoning_where_the_model_shows_it(client: openai.OpenAI) -> None:
    content, reasoning, _, finish, usage = collected(ask(client, "hi", model="deepseek-reasoner", stream=True))
    assert content
    assert reasoning
    assert (finish, usage) == ("stop", None)


def test_it_answers_what_the_script_says(provider: ScriptedProvider, client: openai.OpenAI) -> None:
    told = answer(thinking("hm"), text("half "), text("done"), tool_use("f", '{"broken', "call_mine"), usage="missing")
    provider.script("marker", told, told)
    found = ask(client, "marker")
    assert (found.choices[0].message.content, found.usage) == ("half done", None)
    assert found.choices[0].message.tool_calls[0].function.arguments == '{"broken'
    content, reasoning, calls, _, _ = collected(ask(client, "marker", stream=True))
    assert (content, reasoning, calls) == ("half done", "hm", {0: ["call_mine", "f", '{"broken']})


FAULTS = [
    ("rate_limit", openai.RateLimitError, 429),
    ("quota", openai.RateLimitError, 429),
    ("overloaded", openai.InternalServerError, 503),
    ("authentication", openai.AuthenticationError, 401),
    ("prompt_too_long", openai.BadRequestError, 400),
]


@pytest.mark.parametrize(("kind", "error", "status"), FAULTS)
def test_it_fails_with_the_vendors_errors(
    provider: ScriptedProvider, client: openai.OpenAI, kind: Any, error: type[openai.APIStatusError], status: int
) -> None:
    provider.script("", fault(kind, "in words"))
    with pytest.raises(error, match="in words") as caught:
        ask(client, "hi")
    assert caught.value.status_code == status
    assert caught.value.response.json()["error"].keys() == {"message", "type", "param", "code"}


def test_it_breaks_in_mid_stream(provider: ScriptedProvider, client: openai.OpenAI) -> None:
    provider.script("", answer(tokens(20), delay=1, cut_at_event=5), answer(tokens(20), error_at=3))
    with pytest.raises(openai.APIConnectionError):
        collected(ask(client, "cut", stream=True))
    with pytest.raises(openai.APIError, match="overloaded"):
        collected(ask(client, "error", stream=True))
    assert [entry.outcome for entry in provider.requests] == ["cut", "finished"]


def test_it_sends_raw_bytes(provider: ScriptedProvider, client: openai.OpenAI) -> None:
    body = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "ok"}}]}\r\n\r\n: comment\r\n\r\n'
    provider.script("", raw(body, pace=7))
    assert collected(ask(client, "hi", stream=True))[0] == "ok"


def test_it_lists_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert "gpt-4o" in names
    assert client.models.retrieve("gpt-4o").owned_by == "system"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-0")


def test_it_refuses_strangers(provider: ScriptedProvider) -> None:
    stranger = openai.OpenAI(api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        ask(stranger, "hi")
    assert provider.requests[0].status == 401
