"""The demo model: honest, offline, and good for every button of the desk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelResponse,
    ReasoningPart,
    ResultPart,
    TextPart,
    ToolChoice,
    ToolSpec,
)
from agents.providers.demo import deltas
from agents.providers.demo.turn import answer
from tests.agents.providers.asking import (
    DICE,
    WEATHER,
    assert_same,
    assistant,
    calls,
    request,
    stream,
    text,
    tool,
    user,
)

DEMO = "demo/demo"
SECRET = tool("get_secret_code_tool", input_text="string")
SEND = tool("send_message", message="string", request_heartbeat="boolean")
SEEDS = (
    "This is an automated test message. Call the get_secret_code_tool 3 times in parallel for the following inputs: "
    "'hello world', 'hello letta', 'hello test', and also call the roll_dice_tool once with a 16-sided dice."
)


def reply(
    *messages: ChatMessage | str, tools: Any = (WEATHER, DICE, SECRET), parallel: bool = True, **options: Any
) -> ModelResponse:
    return answer(request(DEMO, *messages, tools=tools, parallel_tool_calls=parallel, **options))


def result(call: str, said: str, *, error: bool = False) -> ResultPart:
    return ResultPart(call, (TextPart(said),) if said else (), is_error=error)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Call the get_weather tool with city 'Oslo'", [("get_weather", {"city": "Oslo"})]),
        ("use roll_dice_tool with 16 sides", [("roll_dice_tool", {"num_sides": 16})]),
        ("roll_dice_tool num_sides=20", [("roll_dice_tool", {"num_sides": 20})]),
        ("Get weather in New York, please", [("get_weather", {"city": "New York"})]),
        ('get_weather {"city": "Bergen", "days": 3}', [("get_weather", {"city": "Bergen", "days": 3})]),
        (
            "get_weather for 'Oslo' and then get_weather for \"Rome\"",
            [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})],
        ),
        (
            SEEDS,
            [
                *(("get_secret_code_tool", {"input_text": f"hello {name}"}) for name in ("world", "letta", "test")),
                ("roll_dice_tool", {"num_sides": 16}),
            ],
        ),
        ("Don't call get_weather", []),
        ("Thank you for the secret code.", []),
        ("hi", []),
    ],
)
def test_it_calls_what_the_message_names(words: str, expected: list[tuple[str, Any]]) -> None:
    response = reply(words)
    assert [(name, json.loads(arguments)) for name, arguments in calls(response)] == expected
    assert response.stop == ("tool_use" if expected else "end_turn")
    assert "demo model" in text(response).lower()
    assert isinstance(response.parts[0], ReasoningPart)
    assert response.parts[0].provider == "demo"


def test_it_calls_one_after_the_other_where_parallel_calls_are_off() -> None:
    history: list[ChatMessage | str] = [SEEDS]
    for turn in range(4):
        response = reply(*history, parallel=False)
        made = [part for part in response.parts if isinstance(part, CallPart)]
        assert len(made) == 1
        history += [assistant(*response.parts), user(result(made[0].id, f"value {turn}"))]
    last = reply(*history, parallel=False)
    assert last.stop == "end_turn"
    assert all(f"“value {turn}”" in text(last) for turn in range(4))


def test_it_quotes_results_and_reasons() -> None:
    asked = assistant(
        CallPart("a", "get_weather", "{}"), CallPart("b", "roll_dice_tool", "{}"), CallPart("c", "get_weather", "{}")
    )
    denial = "Error: request to call tool denied. User reason: too dear"
    response = reply(
        "get_weather, get_weather and roll_dice_tool",
        asked,
        user(result("a", "4 °C"), result("b", denial, error=True), result("c", "")),
    )
    assert response.stop == "end_turn"
    assert "get_weather returned “4 °C”" in text(response)
    assert f"roll_dice_tool did not go through: “{denial}”" in text(response)
    assert "get_weather returned nothing" in text(response)


def test_it_says_that_a_tool_is_not_there() -> None:
    assert "no tool named frobnicate_tool" in text(reply("Call the frobnicate_tool now"))


def test_it_does_not_claim_to_see_images() -> None:
    assert "cannot see" in text(reply(user("look", ImagePart("image/png", "x"))))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("any"), ["get_weather"]),
        (ToolChoice("tool", "roll_dice_tool"), ["roll_dice_tool"]),
        (ToolChoice("none"), []),
        (ToolChoice("auto"), []),
    ],
)
def test_it_honours_the_tool_choice(choice: ToolChoice, expected: list[str]) -> None:
    assert [name for name, _ in calls(reply("hi", tool_choice=choice))] == expected
    if choice.kind == "none":
        assert calls(reply("Call get_weather", tool_choice=choice)) == []


def test_it_speaks_by_tool_where_it_must() -> None:
    response = reply('{"type": "user_message", "message": "hello", "time": "now"}', tools=[SEND])
    [(name, arguments)] = calls(response)
    sent = json.loads(arguments)
    assert name == "send_message"
    assert "hello" in sent["message"]
    assert sent["request_heartbeat"] is False
    done = reply("hello", assistant(CallPart("s", "send_message", arguments)), user(result("s", "None")), tools=[SEND])
    assert done.stop == "end_turn"
    assert calls(done) == []


def test_it_goes_on_after_a_heartbeat() -> None:
    beat = '{"type": "heartbeat", "reason": "x"}'
    weather = tool("get_weather", city="string", request_heartbeat="boolean")
    first = reply("Call get_weather for 'Oslo'", tools=[weather, SEND])
    [(_, arguments)] = calls(first)
    assert json.loads(arguments) == {"city": "Oslo", "request_heartbeat": True}
    call = next(part for part in first.parts if isinstance(part, CallPart))
    second = reply(
        "Call get_weather for 'Oslo'",
        assistant(call),
        user(result(call.id, "cold")),
        assistant("x"),
        user(beat),
        tools=[weather, SEND],
    )
    assert "cold" in json.loads(calls(second)[0][1])["message"]


def test_it_leaves_out_reasoning_and_keeps_the_bound() -> None:
    response = reply("hi", reasoning=False, max_tokens=5)
    assert [type(part) for part in response.parts] == [TextPart]
    assert len(text(response)) == 20
    assert response.stop == "max_tokens"


SCHEMAS: list[Any] = [
    {"type": "boolean"},
    {"type": "number"},
    {"type": "integer", "minimum": 3},
    {"type": "string", "enum": ["red", "blue"]},
    {"type": ["string", "null"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    {"$ref": "#/$defs/Part"},
    {"anyOf": [{"type": "null"}, {"type": "integer"}]},
    {},
]


@given(st.text(max_size=60), st.lists(st.sampled_from(SCHEMAS), max_size=4), st.booleans())
def test_it_fills_every_required_argument_whatever_is_said(words: str, shapes: list[Any], named: bool) -> None:
    properties = {f"p{at}": shape for at, shape in enumerate(shapes)}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": {"Part": {"type": "integer"}},
    }
    response = reply(
        words + " call odd_tool" * named, tools=[ToolSpec("odd_tool", "", schema)], tool_choice=ToolChoice("any")
    )
    assert response.stop == "tool_use"
    for _, arguments in calls(response):
        found = json.loads(arguments)
        assert "{" in words or set(found) == set(properties)
    assert_same(list(deltas(response)), response)


async def test_it_streams_in_small_pieces(settings: Any) -> None:
    settings.LETTAWEB_DEMO_DELAY_MS = 0
    found, response = await stream(DEMO, "Call get_weather for 'Oslo'", tools=[WEATHER])
    assert_same(found, response)
    assert len(found) > 8
    assert response.usage.input > 0
    assert response.usage.output > 0
