"""A request in each vendor's words: what may go out, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelRequest,
    ReasoningPart,
    ResultPart,
    TextPart,
    ToolChoice,
    ToolSpec,
)
from agents.providers.ids import SAFE, WireIds, own_names, wire_name
from agents.providers.openai import traits as gpt
from agents.providers.openai.strict import strict_schema
from agents.providers.openai.wire import streamed
from agents.providers.openai.wire import to_wire as to_openai
from tests.agents.providers.asking import ADAPTIVE, CLAUDE, DICE, GPT, O3, PLAIN, WEATHER, assistant, request, user
from tests.agents.providers.wires import IMAGE, LOOP, PNG, anthropic_wire, openai_wire

# --- ids and names --------------------------------------------------------------------------------

IDS = ["functions.Bash:0", "functions_Bash:0", "functions_Bash_0", "a" * 65, "", "näm", "a b", "call_1"]


def looped(*ids: str) -> tuple[ChatMessage, ...]:
    found: list[ChatMessage] = [user("go")]
    for call_id in ids:
        found += [assistant(CallPart(call_id, "get_weather", "{}")), user(ResultPart(call_id, (TextPart(call_id),)))]
    return tuple(found)


@pytest.mark.parametrize(
    ("wire_of", "handle"), [(anthropic_wire, CLAUDE), (openai_wire, GPT)], ids=["anthropic", "openai"]
)
def test_it_makes_ids_that_the_vendor_takes(wire_of: Callable[[ModelRequest], Any], handle: str) -> None:
    first = wire_of(request(handle, *looped(*IDS, *IDS), tools=[WEATHER]))
    assert first == wire_of(request(handle, *looped(*IDS, *IDS), tools=[WEATHER]))
    longer = wire_of(request(handle, *looped(*IDS, *IDS, "more"), tools=[WEATHER]))
    unmarked = longer["messages"][: len(first["messages"]) - 1]
    assert unmarked == first["messages"][:-1], "a longer history keeps the beginning, for the prompt cache"


@given(st.lists(st.text(max_size=70), max_size=12), st.integers(min_value=34, max_value=64))
def test_it_maps_ids_without_collision(found: list[str], longest: int) -> None:
    ids = WireIds(looped(*found), longest=longest)
    pairs = [(ids.of_call(call_id), ids.of_result(call_id)) for call_id in found]
    assert all(call == result for call, result in pairs)
    assert len({call for call, _ in pairs}) == len(found)
    assert all(SAFE.fullmatch(call) and len(call) <= longest for call, _ in pairs)


def test_it_keeps_an_id_that_the_vendor_takes() -> None:
    assert WireIds(looped("toolu_1")).of_call("toolu_1") == "toolu_1"


@given(st.lists(st.text(max_size=80), unique=True, max_size=12))
def test_it_maps_names_without_collision(names: list[str]) -> None:
    wires = [wire_name(name) for name in names]
    assert len(set(wires)) == len(names)
    assert all(SAFE.fullmatch(wire) for wire in wires)
    back = own_names(names)
    assert [back.get(wire, wire) for wire in wires] == names


def test_it_sends_odd_tool_names_in_a_safe_form_everywhere() -> None:
    odd = ToolSpec("näm.x y", "Odd.", {"type": "object", "properties": {}})
    messages = (user("go"), assistant(CallPart("t", odd.name, "{}")), user(ResultPart("t", ())))
    choice = ToolChoice("tool", odd.name)
    wire = anthropic_wire(request(CLAUDE, *messages, tools=[odd], tool_choice=choice))
    name = wire["tools"][0]["name"]
    assert wire["messages"][1]["content"][0]["name"] == wire["tool_choice"]["name"] == name
    other = openai_wire(request(GPT, *messages, tools=[odd], tool_choice=choice))
    assert other["tools"][0]["function"]["name"] == other["messages"][2]["tool_calls"][0]["function"]["name"] == name


# --- tools ----------------------------------------------------------------------------------------


def test_it_marks_system_tools_and_the_last_message_for_the_cache() -> None:
    wire = anthropic_wire(request(CLAUDE, "a", assistant("b"), "c", tools=[WEATHER, DICE]))
    marked = [wire["system"][-1], wire["tools"][-1], wire["messages"][-1]["content"][-1]]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in marked)
    assert str(wire).count("cache_control") == 3


def test_it_leaves_out_a_blank_system_prompt() -> None:
    blank = replace(request(CLAUDE, "a"), system=" \n")
    assert "system" not in anthropic_wire(blank)
    assert openai_wire(replace(blank, model="gpt-4o"))["messages"][0]["role"] == "user"


def test_it_declares_tools_of_the_history_when_none_is_on_offer() -> None:
    wire = anthropic_wire(request(PLAIN, *LOOP[:1], *looped("t")[1:]))
    assert [tool["name"] for tool in wire["tools"]] == ["get_weather"]
    assert wire["tool_choice"] == {"type": "none"}
    assert "tools" not in openai_wire(request(GPT, *looped("t")))


@pytest.mark.parametrize(("parallel", "kind"), [(False, "auto"), (True, "auto"), (False, "none"), (False, "any")])
def test_it_says_how_tools_may_be_called(parallel: bool, kind: Any) -> None:
    options: dict[str, Any] = {"tools": [WEATHER], "tool_choice": ToolChoice(kind), "parallel_tool_calls": parallel}
    choice = anthropic_wire(request(CLAUDE, "hi", **options))["tool_choice"]
    assert choice.get("disable_parallel_tool_use", False) is (not parallel and kind != "none")
    wire = openai_wire(request(GPT, "hi", **options))
    assert wire["parallel_tool_calls"] is parallel
    assert wire["tool_choice"] == {"auto": "auto", "any": "required", "none": "none"}[kind]


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
NESTED = {
    "type": "object",
    "title": "Box",
    "properties": {"part": {"$ref": "#/$defs/Part"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["part", "tags"],
    "$defs": {"Part": {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "required": ["n"]}},
}


@pytest.mark.parametrize("schema", [CLOSED, NESTED, {"type": "object", "properties": {}}, {}])
def test_it_rewrites_a_schema_for_strict_mode(schema: Any) -> None:
    tool = ToolSpec("f", "F.", schema, strict=True)
    function = openai_wire(request(GPT, "hi", tools=[tool]))["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["additionalProperties"] is False


def _with(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]},
        _with(a={}),
        _with(a={"type": "object"}),
        _with(a={"type": "array"}),
        _with(a={"oneOf": [{"type": "string"}]}),
        _with(a={"type": "string", "pattern": "x"}),
        _with(a={"$ref": "#/$defs/Missing"}),
        _with(a={"$ref": "https://example.com/x"}),
        _with(a={"type": "object", "properties": {"b": {"type": "string"}}}),
        {**CLOSED, "additionalProperties": {"type": "string"}},
        {**CLOSED, "oneOf": []},
        {**CLOSED, "properties": None, "required": ["a"]},
        {"type": "object", "properties": {"a": True}, "required": ["a"]},
        {"type": "string"},
    ],
)
def test_it_sends_a_schema_without_strict_mode_that_cannot_be_strict(schema: Any) -> None:
    assert strict_schema(schema) is None


def test_it_drops_combinations_at_the_top_of_a_schema_that_the_vendor_refuses() -> None:
    odd = ToolSpec("f", "", {"properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]})
    assert anthropic_wire(request(CLAUDE, "hi", tools=[odd]))["tools"][0]["input_schema"]["type"] == "object"


# --- results, images, arguments -------------------------------------------------------------------

PAIR = (
    user("look"),
    assistant(CallPart("a", "get_weather", "{}"), CallPart("b", "get_weather", "{}")),
    user(
        ResultPart("a", (TextPart("one"), IMAGE)),
        ResultPart("b", (IMAGE,)),
        TextPart("and now?"),
    ),
)


def test_it_puts_images_into_results_side_by_side() -> None:
    blocks = anthropic_wire(request(PLAIN, *PAIR, tools=[WEATHER]))["messages"][2]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text"]
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "image"]


def test_it_puts_images_behind_all_tool_messages() -> None:
    messages = openai_wire(request(GPT, *PAIR, tools=[WEATHER]))["messages"][3:]
    assert [message["role"] for message in messages] == ["tool", "tool", "user"]
    assert [message["content"] for message in messages[:2]] == ["one", "The result is in the images that follow."]
    kinds = [part["type"] for part in messages[2]["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]


def test_it_gives_an_error_text_alone() -> None:
    failed = user(ResultPart("a", (IMAGE,), is_error=True), ResultPart("b", (), is_error=True))
    blocks = anthropic_wire(request(PLAIN, *PAIR[:2], failed, tools=[WEATHER]))["messages"][2]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "image"]
    assert all(block["is_error"] and block["content"] for block in blocks[:2])


@pytest.mark.parametrize(
    "image", [IMAGE, ImagePart(url=f"data:image/png;base64,{PNG}"), ImagePart(url="https://x.test/a.png")]
)
def test_it_sends_images_of_every_form(image: ImagePart) -> None:
    anthropic_wire(request(PLAIN, user("see", image)))
    openai_wire(request(GPT, user("see", image)))


def test_it_allows_a_result_without_content() -> None:
    anthropic_wire(request(PLAIN, *PAIR[:1], *looped("a")[1:2], user(ResultPart("a", ())), tools=[WEATHER]))
    openai_wire(request(GPT, *PAIR[:1], *looped("a")[1:2], user(ResultPart("a", ())), tools=[WEATHER]))


@pytest.mark.parametrize(
    "arguments", ['{"n": 1e400}', '{"n": NaN}', '{"n": ' + "[" * 200 + "]" * 200 + "}", "{", "[1]"]
)
def test_it_sends_arguments_as_an_object_whatever_they_hold(arguments: str) -> None:
    messages = (user("go"), assistant(CallPart("a", "get_weather", arguments)), user(ResultPart("a", ())))
    wire = anthropic_wire(request(PLAIN, *messages, tools=[WEATHER]))
    assert isinstance(wire["messages"][1]["content"][0]["input"], dict)
    openai_wire(request(GPT, *messages, tools=[WEATHER]))


# --- what is OpenAI's alone -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "present", "absent"),
    [
        ("gpt-4o", {"temperature": 0.2}, {"max_tokens", "temperature"}, {"max_completion_tokens", "reasoning_effort"}),
        ("o3", {"temperature": 0.2}, {"max_completion_tokens"}, {"max_tokens", "temperature", "reasoning_effort"}),
        ("gpt-5-mini", {"reasoning_effort": "low"}, {"max_completion_tokens", "reasoning_effort"}, {"max_tokens"}),
        ("gpt-4o", {"reasoning_effort": "low"}, {"max_tokens"}, {"reasoning_effort"}),
        ("o3", {"reasoning": False}, {"reasoning_effort"}, set()),
    ],
)
def test_it_names_the_bound_as_the_model_does(
    model: str, options: dict[str, Any], present: set[str], absent: set[str]
) -> None:
    wire = openai_wire(request(f"openai/{model}", "hi", **options))
    assert present <= set(wire)
    assert not absent & set(wire)


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [("o4-mini", True), ("gpt-5.1", True), ("openai/gpt-5", True), ("gpt-5-chat-latest", False), ("gpt-4.1", False)],
)
def test_it_knows_reasoning_models_by_their_names(model: str, reasoning: bool) -> None:
    assert gpt.by_name(model).reasoning is reasoning


def test_it_asks_for_usage_in_a_stream_unless_that_was_refused() -> None:
    assert streamed({}, gpt.Traits())["stream_options"] == {"include_usage": True}
    assert streamed({}, gpt.Traits(left_out=frozenset({"stream_options"}))) == {"stream": True}


def test_it_never_sends_reasoning_back_unless_the_server_wants_it() -> None:
    messages = (user("a"), assistant(ReasoningPart("hm", "", "openai"), "b"), user("c"))
    assert "reasoning_content" not in str(openai_wire(request(O3, *messages)))
    wire = to_openai(request("openai/deepseek-x", *messages), gpt.Traits(echo=True))
    assert wire["messages"][2]["reasoning_content"] == "hm"


def test_it_passes_a_response_format_on() -> None:
    schema = {**CLOSED}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    assert openai_wire(request(GPT, "hi", response_format=wanted))["response_format"] == wanted
    wire = anthropic_wire(request(ADAPTIVE, "hi", response_format=wanted, reasoning_effort="minimal"))
    assert wire["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": schema}}
