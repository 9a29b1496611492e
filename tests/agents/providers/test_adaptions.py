"""What a vendor's refusal teaches: the next try leaves out or changes what was refused, and so do later calls."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from agents import providers
from agents.providers.anthropic import Anthropic
from agents.providers.anthropic.traits import Traits
from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ProviderError,
    ReasoningPart,
    ResultPart,
    TextPart,
    ToolChoice,
)
from agents.providers.images import LEFT_OUT
from tests.agents.providers.asking import (
    ADAPTIVE,
    CLAUDE,
    DICE,
    GPT,
    LOCAL,
    O3,
    PLAIN,
    WEATHER,
    assert_same,
    assistant,
    calls,
    complete,
    stream,
    text,
    user,
)
from tests.scripted.answers import fault
from tests.scripted.server import ScriptedProvider

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()
WAYS = pytest.mark.parametrize("ask", [stream, complete])


def forms(vendors: ScriptedProvider) -> list[str | None]:
    return [(sent.body.get("thinking") or {}).get("type") for sent in vendors.generations]


@pytest.mark.parametrize(
    ("handle", "wrong", "right"), [(ADAPTIVE, "budget", "adaptive"), (CLAUDE, "adaptive", "enabled")]
)
@WAYS
async def test_it_learns_the_other_form_of_thinking(
    vendors: ScriptedProvider, ask: Any, handle: str, wrong: Any, right: str
) -> None:
    provider, model = providers.for_handle(handle)
    assert isinstance(provider, Anthropic)
    provider.remember(model, Traits(thinking=wrong))
    await ask(handle, "hi")
    assert forms(vendors) == ["enabled" if wrong == "budget" else wrong, right]
    await ask(handle, "again")
    assert forms(vendors)[2:] == [right], "what was learned holds for the next call"


async def test_it_does_without_thinking_where_no_form_is_taken(vendors: ScriptedProvider) -> None:
    vendors.script("", fault("bad_request", "adaptive thinking is not supported on this model"))
    await stream("anthropic/claude-next", "hi")
    await stream("anthropic/claude-next", "hi")
    assert forms(vendors) == ["adaptive", "enabled", None, None]


async def test_it_takes_the_form_from_the_vendors_list(vendors: ScriptedProvider) -> None:
    provider, model = providers.for_handle(ADAPTIVE)
    listed = {found.name: found for found in await provider.models()}
    assert listed[model].reasoning
    assert listed[model].context_window == 1_000_000
    assert not listed["claude-3-5-haiku-20241022"].reasoning
    await stream(ADAPTIVE, "hi")
    assert vendors.refused == []


async def test_it_leaves_out_what_a_compatible_server_refuses(vendors: ScriptedProvider) -> None:
    for refusal in (
        "Unknown parameter: 'stream_options'.",
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "Invalid schema for function 'get_weather'",
    ):
        vendors.script("", fault("bad_request", refusal))
    deltas, response = await stream(LOCAL, "hi", tools=[WEATHER])
    assert_same(deltas, response)
    body = vendors.generations[-1].body
    assert not {"stream_options", "parallel_tool_calls", "max_tokens"} & set(body)
    assert body["max_completion_tokens"] == 4096
    count = len(vendors.generations)
    await stream(LOCAL, "again", tools=[WEATHER])
    assert len(vendors.generations) == count + 1, "what was learned holds for the next call"


async def test_it_learns_from_each_refusal_once(vendors: ScriptedProvider) -> None:
    vendors.script("", fault("bad_request", "Unknown parameter: 'stream_options'.", times=9))
    with pytest.raises(ProviderError) as raised:
        await stream(GPT, "hi")
    assert raised.value.kind == "bad_request"
    assert len(vendors.generations) == 2


async def test_it_lowers_a_bound_above_the_models_own(vendors: ScriptedProvider) -> None:
    await complete(PLAIN, "hi", max_tokens=100_000)
    assert [sent.body["max_tokens"] for sent in vendors.generations] == [100_000, 8192]


async def test_it_leaves_stored_thinking_out_that_the_vendor_does_not_know_again(vendors: ScriptedProvider) -> None:
    edited = assistant(ReasoningPart("edited", "c2lnLW9sZA==", "anthropic"), "a")
    _, response = await stream(CLAUDE, "q", edited, "next")
    assert text(response)
    assert "edited" not in str(vendors.generations[-1].body)
    _, first = await stream(CLAUDE, "q")
    await stream(CLAUDE, "q", assistant(*first.parts), "next")
    kinds = [block["type"] for block in vendors.generations[-1].body["messages"][1]["content"]]
    assert kinds == ["thinking", "text"], "other histories keep theirs"


@pytest.mark.parametrize(
    ("handle", "refusal"),
    [
        (
            CLAUDE,
            "messages.0.content.1: Unable to download the file. Please verify the URL and try again.",
        ),
        (GPT, "Error while downloading https://example.org/gone.png."),
    ],
)
async def test_it_leaves_out_an_image_that_the_vendor_cannot_load(
    vendors: ScriptedProvider, handle: str, refusal: str
) -> None:
    gone, here = ImagePart(url="https://example.org/gone.png"), ImagePart("image/png", PNG)
    result = ResultPart("t", (TextPart("shot"), gone))
    messages = (user("look", gone, here), assistant(CallPart("t", "get_weather", "{}")), ChatMessage("user", (result,)))
    vendors.script("", fault("bad_request", refusal))
    await stream(handle, *messages, tools=[WEATHER])
    told = str(vendors.generations[-1].body)
    assert (told.count(LEFT_OUT), "gone.png" in told, PNG in told) == (2, False, True)
    vendors.script("", fault("bad_request", refusal), fault("bad_request", "Could not process image"))
    await stream(handle, *messages, tools=[WEATHER])
    told = str(vendors.generations[-1].body)
    assert (told.count(LEFT_OUT), PNG in told) == (3, False)
    await stream(handle, user("look", here))
    assert PNG in str(vendors.generations[-1].body), "other requests keep theirs"
    assert vendors.refused == []


async def test_it_takes_a_refusal_about_something_else_for_what_it_is(vendors: ScriptedProvider) -> None:
    vendors.script("", fault("bad_request", "image generation is off"))
    with pytest.raises(ProviderError):
        await complete(CLAUDE, "hi")


async def test_it_asks_for_the_api_version_that_takes_a_temperature(vendors: ScriptedProvider) -> None:
    await complete(PLAIN, "hi", temperature=0.2)
    await complete(PLAIN, "hi")
    assert [sent.headers["anthropic-version"] == "2023-06-01" for sent in vendors.generations] == [True, False]
    assert vendors.refused == []


async def test_it_lets_the_vendor_drop_thinking_that_does_not_fit_any_more(vendors: ScriptedProvider) -> None:
    await stream("anthropic/claude-opus-5-5", "hi")
    assert vendors.generations[0].headers["anthropic-beta"].startswith("thinking-binding")
    assert vendors.refused == []
    vendors.script("", fault("bad_request", "thinking.adaptive.block_binding: Extra inputs are not permitted"))
    await stream("anthropic/claude-sonnet-5-5", "hi")
    assert "block_binding" not in vendors.generations[-1].body["thinking"]


@pytest.mark.parametrize("handle", [CLAUDE, ADAPTIVE, GPT, O3])
async def test_it_forces_a_call(vendors: ScriptedProvider, handle: str) -> None:
    choice = ToolChoice("tool", "get_weather")
    _, response = await stream(handle, "hi", tools=[DICE, WEATHER], tool_choice=choice)
    assert [name for name, _ in calls(response)] == ["get_weather"]
    assert vendors.refused == []
