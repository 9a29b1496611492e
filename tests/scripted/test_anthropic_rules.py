"""A table of what the Messages API refuses, and of what it takes although it looks odd."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from tests.scripted.anthropic_params import Rules, check_request
from tests.scripted.exchange import parse_json
from tests.scripted.http import Request
from tests.scripted.refusals import Refused
from tests.scripted.signing import redact, sign

Json = Any

TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
BUDGET = {"type": "enabled", "budget_tokens": 1024}
NEW: dict[str, Any] = {"model": "claude-opus-4-6"}
PNG = "iVBORw0KGgoAAAANSUhEUg=="


def call(identifier: str = "toolu_1", **values: Json) -> Json:
    return {"type": "tool_use", "id": identifier, "name": "f", "input": {}, **values}


def result(identifier: str = "toolu_1", **values: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": identifier, "content": "r", **values}


def said(value: str) -> Json:
    return {"type": "text", "text": value}


def thought(value: str = "hm", signature: str | None = None) -> Json:
    return {"type": "thinking", "thinking": value, "signature": sign(value) if signature is None else signature}


def user(*content: Json) -> Json:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def model(*content: Json) -> Json:
    return {"role": "assistant", "content": content[0] if isinstance(content[0], str) else list(content)}


def request(*messages: Json, **values: Json) -> dict[str, Json]:
    """A request with these messages; a value of None leaves the field out."""
    body: dict[str, Json] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 2048,
        "messages": list(messages) or [user("hi")],
    }
    body = {**body, **values}
    return {name: value for name, value in body.items() if value is not None}


def with_tools(*messages: Json, **values: Json) -> dict[str, Json]:
    return request(*messages, tools=[TOOL], **values)


def with_tool(**values: Json) -> dict[str, Json]:
    return request(tools=[{**TOOL, **values}])


def schema(**values: Json) -> dict[str, Json]:
    return with_tool(input_schema={"type": "object", **values})


PAIR = (user("q"), model(call()), user(result()))
IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
REFUSED: dict[str, tuple[Mapping[str, Json], str]] = {
    # the request
    "no model": (request(model=None), "model: Field required"),
    "foreign model": (request(model="gpt-4o"), "model: gpt-4o"),
    "no max_tokens": (request(max_tokens=None), "max_tokens: Field required"),
    "max_tokens 0": (request(max_tokens=0), "greater than or equal to 1"),
    "max_tokens above the model's": (request(max_tokens=64_001), "maximum allowed number of output tokens"),
    "unknown field": (request(response_format={}), "response_format: Extra inputs are not permitted"),
    "temperature in the new version": (request(temperature=0.5), "temperature: Extra inputs"),
    "blank stop sequence": (request(stop_sequences=[" "]), "non-whitespace"),
    "prompt too long": (request(user("word " * 180_000)), "prompt is too long"),
    # thinking
    "small budget": (request(thinking={**BUDGET, "budget_tokens": 1000}), "greater than or equal to 1024"),
    "budget not below max_tokens": (request(max_tokens=1024, thinking=BUDGET), "must be greater than"),
    "budget for a new model": (request(**NEW, thinking=BUDGET), "thinking.type.enabled"),
    "adaptive for an old model": (request(thinking={"type": "adaptive"}), "adaptive thinking is not supported"),
    "thinking on a model without": (
        request(model="claude-3-5-haiku-20241022", thinking=BUDGET),
        "does not support thinking",
    ),
    "budget in adaptive": (request(**NEW, thinking={"type": "adaptive", "budget_tokens": 2000}), "Extra inputs"),
    "thinking of unknown type": (request(thinking={"type": "on"}), "does not match any"),
    "forced tool and thinking": (with_tools(thinking=BUDGET, tool_choice={"type": "any"}), "forces tool use"),
    # system and tools
    "blank system block": (request(system=[said(" \n")]), "system: text content blocks must contain non-whitespace"),
    "empty system block": (request(system=[said("")]), "system: text content blocks must be non-empty"),
    "tool name with a dot": (with_tool(name="a.b"), "String should match pattern"),
    "tool name too long": (with_tool(name="a" * 65), "String should match pattern"),
    "tool name empty": (with_tool(name=""), "String should match pattern"),
    "tool twice": (request(tools=[TOOL, TOOL]), "Tool names must be unique"),
    "tool without schema": (request(tools=[{"name": "f"}]), "input_schema: Field required"),
    "schema without type": (with_tool(input_schema={"properties": {}}), "input_schema.type: Field required"),
    "schema of a list": (with_tool(input_schema={"type": "array"}), "Input should be 'object'"),
    "schema with an unknown type": (schema(properties={"a": {"type": "str"}}), "JSON schema is invalid"),
    "schema with a null property": (schema(properties={"a": None}), "JSON schema is invalid"),
    "schema with required true": (
        schema(properties={"a": {"type": "string", "required": True}}),
        "JSON schema is invalid",
    ),
    "schema with anyOf at the top": (schema(anyOf=[{"type": "object"}]), "at the top level"),
    "property name with a space": (schema(properties={"a b": {"type": "string"}}), "Property keys"),
    "tool of OpenAI's form": (request(tools=[{"type": "function", "function": TOOL}]), "Extra inputs"),
    "tool_choice without tools": (request(tool_choice={"type": "auto"}), "may only be specified while providing tools"),
    "tool_choice of an unknown tool": (with_tools(tool_choice={"type": "tool", "name": "g"}), "not found in provided"),
    "history of calls without tools": (request(*PAIR), "must define tools"),
    "five cache marks": (
        request(user(*({**said("x"), "cache_control": {"type": "ephemeral"}} for _ in range(5)))),
        "maximum of 4 blocks",
    ),
    # messages
    "no messages": (request(messages=[]), "at least one message is required"),
    "assistant first": (request(model("hi"), user("x")), 'first message must use the "user" role'),
    "two users": (request(user("a"), user("b")), "roles must alternate"),
    "system as a message": (request({"role": "system", "content": "x"}), 'Unexpected role "system"'),
    "unknown message field": (request({**user("x"), "name": "bob"}), "messages.0.name: Extra inputs"),
    "empty content": (request(user("")), "non-empty content"),
    "empty list": (request({"role": "user", "content": []}), "non-empty content"),
    "null content": (request({"role": "user", "content": None}), "valid list"),
    "blank content": (request(user(" \n")), "non-whitespace"),
    "empty text block": (request(user(said(""))), "must be non-empty"),
    "blank text block": (request(user("q"), model(said("\n"), call()), user(result()), tools=[TOOL]), "non-whitespace"),
    "unknown block": (request(user({"type": "image_url"})), "does not match any"),
    "unknown block field": (request(user({**said("x"), "id": "1"})), "Extra inputs"),
    "image of another type": (
        request(user({**IMAGE, "source": {**IMAGE["source"], "media_type": "image/jpeg"}})),
        "does not appear",
    ),
    "image that is none": (request(user({**IMAGE, "source": {**IMAGE["source"], "data": "%%"}})), "invalid base64"),
    "image by http": (request(user({"type": "image", "source": {"type": "url", "url": "http://x/a.png"}})), "HTTPS"),
    "final answer with a blank at its end": (request(user("q"), model("so ")), "trailing whitespace"),
    "prefill with thinking": (request(user("q"), model("so"), thinking=BUDGET), "not supported when thinking"),
    "prefill of a new model": (request(user("q"), model("so"), **NEW), "does not support assistant message prefill"),
    # calls and results
    "call without result": (with_tools(user("q"), model(call()), user("next")), "without `tool_result` blocks"),
    "call at the end": (with_tools(user("q"), model(call())), "without `tool_result` blocks"),
    "one of two results": (with_tools(user("q"), model(call("a"), call("b")), user(result("a"))), "after: b"),
    "result without call": (with_tools(user("q"), model("a"), user(result())), "unexpected `tool_use_id`"),
    "result first": (with_tools(user(result())), "unexpected `tool_use_id`"),
    "result of another id": (with_tools(user("q"), model(call()), user(result("toolu_2"))), "unexpected `tool_use_id`"),
    "result twice": (with_tools(*PAIR[:2], user(result(), result())), "must have a single result"),
    "result after text": (with_tools(*PAIR[:2], user(said("first"), result())), "without `tool_result` blocks"),
    "result one message late": (
        with_tools(*PAIR[:2], user("wait"), model("ok"), user(result())),
        "without `tool_result` blocks",
    ),
    "id twice in an answer": (with_tools(user("q"), model(call(), call()), user(result())), "must be unique"),
    "id used again later": (with_tools(*PAIR, model(call()), user(result())), "must be unique"),
    "id with a colon": (with_tools(user("q"), model(call("f:0")), user(result("f:0"))), "String should match pattern"),
    "empty id": (with_tools(user("q"), model(call("")), user(result(""))), "String should match pattern"),
    "input as text": (with_tools(user("q"), model(call(input="{}")), user(result())), "valid dictionary"),
    "call by the user": (with_tools(user(call())), "can only be in `assistant` messages"),
    "result by the model": (with_tools(user("q"), model(result())), "can only be in `user` messages"),
    "empty result that is an error": (
        with_tools(*PAIR[:2], user(result(content="", is_error=True))),
        "cannot be empty",
    ),
    "blank text in a result": (with_tools(*PAIR[:2], user(result(content=[said(" ")]))), "non-whitespace"),
    "image in an error": (with_tools(*PAIR[:2], user(result(content=[IMAGE], is_error=True))), "must be type `text`"),
    # thinking blocks
    "thinking without signature": (
        request(user("q"), model({"type": "thinking", "thinking": "hm"}, said("a")), user("n")),
        "signature: Field required",
    ),
    "thinking with an empty signature": (
        request(user("q"), model(thought("hm", ""), said("a")), user("n")),
        "Invalid `sig",
    ),
    "thinking that was edited": (
        request(user("q"), model(thought("hmm", sign("hm")), said("a")), user("n"), thinking=BUDGET),
        "Invalid `signature`",
    ),
    "foreign redacted thinking": (
        request(user("q"), model({"type": "redacted_thinking", "data": "b3BhcXVl"}, said("a")), user("n")),
        "Invalid `data`",
    ),
    "an answer that ends in thinking": (request(user("q"), model(thought()), user("n")), "cannot be `thinking`"),
    "an empty answer": (request(user("q"), {"role": "assistant", "content": []}, user("n")), "non-empty content"),
    "thinking by the user": (request(user(thought())), "can only be in `assistant` messages"),
    "loop without its thinking": (with_tools(*PAIR, thinking=BUDGET), "must start with a thinking block"),
    "thinking in a loop with thinking off": (
        with_tools(user("q"), model(thought(), call()), user(result())),
        "When thinking is disabled",
    ),
}
TAKEN: dict[str, Mapping[str, Json]] = {
    "plain": request(),
    "calls and results": with_tools(*PAIR),
    "empty result": with_tools(*PAIR[:2], user(result(content=""))),
    "result without content": with_tools(*PAIR[:2], user({"type": "tool_result", "tool_use_id": "toolu_1"})),
    "results in any order, then text": with_tools(
        user("q"), model(call("a"), call("b")), user(result("b"), result("a"), said("and"))
    ),
    "image in a result": with_tools(*PAIR[:2], user(result(content=[said("see"), IMAGE]))),
    "thinking in its loop": with_tools(user("q"), model(thought(), call()), user(result()), thinking=BUDGET),
    "thinking at the start of a long loop": with_tools(
        user("q"), model(thought(), call("a")), user(result("a")), model(call("b")), user(result("b")), thinking=BUDGET
    ),
    "redacted thinking": request(
        user("q"), model({"type": "redacted_thinking", "data": redact()}, said("a")), user("n"), thinking=BUDGET
    ),
    "old thinking with thinking off": request(user("q"), model(thought(), said("a")), user("n")),
    "no thinking in an adaptive loop": with_tools(*PAIR, **NEW, thinking={"type": "adaptive"}),
    "prefill of an old model": request(user("q"), model("so")),
    "empty final answer": request(user("q"), {"role": "assistant", "content": ""}),
    "forced tool": with_tools(tool_choice={"type": "tool", "name": "f"}),
    "empty system": request(system=""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses(name: str) -> None:
    body, words = REFUSED[name]
    with pytest.raises(Refused) as caught:
        check_request(body, Rules())
    assert words in caught.value.message


@pytest.mark.parametrize("name", TAKEN)
def test_it_takes(name: str) -> None:
    check_request(TAKEN[name], Rules())


SAMPLING: list[tuple[dict[str, Json], str]] = [
    ({"temperature": 0.5}, ""),
    ({"temperature": 2}, "range"),
    ({"temperature": 0.5, "thinking": BUDGET}, "may only be set to 1"),
    ({"temperature": 1, "thinking": BUDGET}, ""),
    ({"top_p": 0.5, "thinking": BUDGET}, "`top_p` must be"),
    ({"top_k": 5, "thinking": BUDGET}, "`top_k` must be unset"),
    ({**NEW, "temperature": 1}, "not supported on this model"),
]


@pytest.mark.parametrize(("values", "words"), SAMPLING)
def test_it_knows_sampling_of_the_old_version(values: dict[str, Json], words: str) -> None:
    expected: AbstractContextManager[Any] = pytest.raises(Refused, match=words) if words else nullcontext()
    with expected:
        check_request(request(**values), Rules(sampling=True))


def test_it_joins_neighbours_when_roles_need_not_alternate() -> None:
    split = with_tools(user("q"), model("a"), model(call()), user(result()), user("more"))
    check_request(split, Rules(alternate=False))
    late = with_tools(user("q"), model(call()), user("more"), user(result()))
    with pytest.raises(Refused, match="without `tool_result` blocks"):
        check_request(late, Rules(alternate=False))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff{}", json.dumps({"a": "\ud83d"}).encode()])
def test_it_refuses_what_is_no_json(body: bytes) -> None:
    with pytest.raises(Refused, match="not valid JSON"):
        parse_json(Request("POST", "/v1/messages", {}, {}, body))
