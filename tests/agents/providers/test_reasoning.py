"""Thinking in each model's form: when it is asked for, what goes back, and what may stand beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.providers.anthropic import traits as claude
from agents.providers.anthropic.wire import to_wire as to_anthropic
from agents.providers.base import CallPart, ReasoningPart, RedactedReasoningPart, ResultPart, ToolChoice
from tests.agents.providers.asking import ADAPTIVE, CLAUDE, DICE, GPT, PLAIN, WEATHER, assistant, request, user
from tests.agents.providers.wires import LOOP, THOUGHT, anthropic_wire, openai_wire
from tests.scripted.signing import redact, sign

LATE = "anthropic/claude-opus-5-5"
BOUND = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize(
    ("model", "thinking", "off"),
    [
        ("claude-3-opus-20240229", "none", "omit"),
        ("claude-3-5-sonnet-20241022", "none", "omit"),
        ("claude-3-5-haiku-latest", "none", "omit"),
        ("claude-2.1", "none", "omit"),
        ("claude-instant-1.2", "none", "omit"),
        ("claude-3-7-sonnet-20250219", "budget", "omit"),
        ("claude-sonnet-4-20250514", "budget", "omit"),
        ("claude-opus-4-0", "budget", "omit"),
        ("claude-opus-4-1-20250805", "budget", "omit"),
        ("claude-sonnet-4-5-20250929", "budget", "omit"),
        ("claude-haiku-4.5", "budget", "omit"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "budget", "omit"),
        ("claude-opus-4-6", "adaptive", "omit"),
        ("claude-opus-4-7", "adaptive", "omit"),
        ("claude-opus-5", "adaptive", "disabled"),
        ("claude-sonnet-5-20260601", "adaptive", "disabled"),
        ("claude-opus-5-5", "adaptive", "always_on"),
        ("claude-sonnet-5-5", "adaptive", "between_tools"),
        ("claude-haiku-5-5", "adaptive", "disabled"),
        ("claude-fable-5-1", "adaptive", "always_on"),
        ("claude-next", "adaptive", "omit"),
        ("some-proxy-model", "adaptive", "omit"),
    ],
)
def test_it_takes_the_form_of_reasoning_from_the_name(model: str, thinking: str, off: str) -> None:
    found = claude.by_name(model)
    assert (found.thinking, found.off) == (thinking, off)
    assert found.sampling is (thinking != "adaptive")


@pytest.mark.parametrize(
    ("handle", "options", "expected"),
    [
        (CLAUDE, {}, {"type": "enabled", "budget_tokens": 1024}),
        (CLAUDE, {"reasoning": True, "reasoning_tokens": 3000}, {"type": "enabled", "budget_tokens": 3000}),
        (CLAUDE, {"reasoning_tokens": 5}, {"type": "enabled", "budget_tokens": 1024}),
        (CLAUDE, {"reasoning": False}, None),
        (ADAPTIVE, {}, {"type": "adaptive", "display": "summarized"}),
        (ADAPTIVE, {"reasoning": False}, None),
        ("anthropic/claude-opus-5", {"reasoning": False}, {"type": "disabled"}),
        (LATE, {"reasoning": False}, {"type": "adaptive", "display": "omitted", **BOUND}),
        (LATE, {}, {"type": "adaptive", "display": "summarized", **BOUND}),
        (PLAIN, {}, None),
        (PLAIN, {"reasoning": True}, None),
    ],
)
def test_it_asks_for_reasoning_in_the_models_form(handle: str, options: dict[str, Any], expected: Any) -> None:
    assert anthropic_wire(request(handle, "hi", **options)).get("thinking") == expected


@pytest.mark.parametrize(
    ("wanted", "budget", "sent"), [(100, 0, 1124), (4096, 0, 4096), (4096, 4096, 8192), (1, 2000, 2001)]
)
def test_it_raises_the_bound_above_the_budget(wanted: int, budget: int, sent: int) -> None:
    wire = anthropic_wire(request(CLAUDE, "hi", max_tokens=wanted, reasoning_tokens=budget))
    assert wire["max_tokens"] == sent


def test_it_keeps_bound_and_budget_within_the_models_own() -> None:
    traits = replace(claude.by_name("claude-sonnet-4-5"), max_output=8000)
    wire = to_anthropic(request(CLAUDE, "hi", max_tokens=50_000, reasoning_tokens=20_000), traits)
    assert (wire["max_tokens"], wire["thinking"]["budget_tokens"]) == (8000, 6976)


@pytest.mark.parametrize(
    ("handle", "options", "sent"),
    [
        (PLAIN, {"temperature": 0.3}, 0.3),
        (PLAIN, {}, None),
        (PLAIN, {"temperature": 1.7}, 1.0),
        (CLAUDE, {"temperature": 0.3}, None),
        (CLAUDE, {"temperature": 0.3, "reasoning": False}, 0.3),
        (ADAPTIVE, {"temperature": 0.3, "reasoning": False}, None),
    ],
)
def test_it_sends_a_temperature_only_where_the_form_allows(handle: str, options: dict[str, Any], sent: Any) -> None:
    assert anthropic_wire(request(handle, "hi", **options)).get("temperature") == sent


@pytest.mark.parametrize("kind", ["any", "tool"])
@pytest.mark.parametrize("handle", [CLAUDE, ADAPTIVE])
def test_it_does_not_think_where_a_call_is_forced(handle: str, kind: Any) -> None:
    choice = ToolChoice(kind, "get_weather")
    wire = anthropic_wire(request(handle, *LOOP, tools=[WEATHER], tool_choice=choice))
    assert "thinking" not in wire
    assert [block["type"] for block in wire["messages"][1]["content"]] == ["tool_use"]
    assert wire["tool_choice"]["type"] == kind


def test_it_offers_the_forced_tool_alone_where_the_model_takes_no_force() -> None:
    made = request(LATE, *LOOP, tools=[DICE, WEATHER], tool_choice=ToolChoice("tool", "get_weather"))
    wire = anthropic_wire(made)
    assert [tool["name"] for tool in wire["tools"]] == ["get_weather"]
    assert wire["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert wire["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize("handle", [CLAUDE, ADAPTIVE])
def test_it_sends_signed_thinking_back_byte_for_byte(handle: str) -> None:
    hidden = RedactedReasoningPart(redact(), "anthropic")
    messages = (user("go"), assistant(THOUGHT, hidden, CallPart("t", "get_weather", "{}")), LOOP[2])
    blocks = anthropic_wire(request(handle, *messages, tools=[WEATHER]))["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
    assert blocks[1] == {"type": "redacted_thinking", "data": hidden.data}


@pytest.mark.parametrize(
    "foreign",
    [
        ReasoningPart("hm", "", "anthropic"),
        ReasoningPart("hm", "x", "openai"),
        ReasoningPart("hm", "x"),
        ReasoningPart("hm", "", "demo"),
        RedactedReasoningPart("x", "other"),
        RedactedReasoningPart("", "anthropic"),
    ],
)
def test_it_leaves_foreign_thinking_out(foreign: Any) -> None:
    messages = (user("go"), assistant(foreign, CallPart("t", "get_weather", "{}")), LOOP[2])
    wire = anthropic_wire(request(CLAUDE, *messages, tools=[WEATHER]))
    assert [block["type"] for block in wire["messages"][1]["content"]] == ["tool_use"]
    assert "thinking" not in wire, "a budget is refused within a loop that began without thinking"
    assert "thinking" in anthropic_wire(request(ADAPTIVE, *messages, tools=[WEATHER]))


def test_it_thinks_on_within_a_loop_whose_first_message_thought() -> None:
    more = (assistant(CallPart("u", "get_weather", "{}")), user(ResultPart("u", ())))
    assert "thinking" in anthropic_wire(request(CLAUDE, *LOOP, *more, tools=[WEATHER]))


def test_it_leaves_no_empty_message_and_no_two_of_a_role() -> None:
    foreign = ReasoningPart("hm", "x", "openai")
    wire = anthropic_wire(request(CLAUDE, "a", assistant(foreign), "b"))
    assert [message["role"] for message in wire["messages"]] == ["user"]
    assert openai_wire(request(GPT, "a", assistant(foreign), "b"))["messages"][1:] == [
        {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
    ]  # fmt: skip
