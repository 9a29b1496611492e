"""A table of what the chat completions API refuses, and of what it takes although it looks odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.scripted.openai_params import check_request
from tests.scripted.refusals import Refused

Json = Any

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**PARAMETERS, "required": ["a"], "additionalProperties": False}
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="


def function(**values: Json) -> Json:
    return {"type": "function", "function": {"name": "f", "parameters": PARAMETERS, **values}}


def strict(**values: Json) -> dict[str, Json]:
    return request(tools=[function(strict=True, parameters={**CLOSED, **values})])


def call(identifier: str = "call_1", **values: Json) -> Json:
    return {"id": identifier, "type": "function", "function": {"name": "f", "arguments": "{}", **values}}


def user(content: Json) -> Json:
    return {"role": "user", "content": content}


def model(content: Json, *calls: Json) -> Json:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def result(identifier: str = "call_1", content: Json = "r") -> Json:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def image(value: Json) -> Json:
    return {"type": "image_url", "image_url": value}


def request(*messages: Json, **values: Json) -> dict[str, Json]:
    body: dict[str, Json] = {"model": "gpt-4o", "messages": list(messages) or [user("hi")], **values}
    return {name: value for name, value in body.items() if value is not None}


NESTED = {"type": "object", "properties": {"b": {"type": "string"}}, "required": [], "additionalProperties": False}
REFUSED: dict[str, tuple[Mapping[str, Json], str, str | None]] = {
    # the request
    "no model": (request(model=None), "must provide a model", None),
    "unknown model": (request(model="claude-3"), "does not exist", "model_not_found"),
    "unknown field": (request(thinking={}), "Unknown parameter: 'thinking'", "unknown_parameter"),
    "max_tokens for a reasoning model": (
        request(model="o3", max_tokens=5),
        "max_completion_tokens",
        "unsupported_parameter",
    ),
    "both limits": (request(max_tokens=5, max_completion_tokens=5), "at the same time", None),
    "limit 0": (request(max_tokens=0), "below minimum value", "integer_below_min_value"),
    "temperature for a reasoning model": (
        request(model="gpt-5", temperature=0.2),
        "does not support",
        "unsupported_value",
    ),
    "temperature too high": (request(temperature=2.5), "from 0 to 2", "invalid_value"),
    "effort for another model": (request(reasoning_effort="low"), "reasoning_effort", "unsupported_parameter"),
    "stream options alone": (request(stream_options={"include_usage": True}), "only allowed when 'stream'", None),
    "too long": (request(user("word " * 110_000)), "maximum context length", "context_length_exceeded"),
    # tools
    "empty tools": (request(tools=[]), "empty array", "empty_array"),
    "tool of Anthropic's form": (request(tools=[{"name": "f", "input_schema": PARAMETERS}]), "function", None),
    "function name with a dot": (request(tools=[function(name="a.b")]), "does not match pattern", "invalid_value"),
    "function name too long": (request(tools=[function(name="a" * 65)]), "too long", "string_above_max_length"),
    "function twice": (request(tools=[function(), function()]), "unique", None),
    "unknown function field": (request(tools=[function(input_schema={})]), "Unknown parameter", "unknown_parameter"),
    "schema of a string": (
        request(tools=[function(parameters={"type": "string"})]),
        "object",
        "invalid_function_parameters",
    ),
    "schema with an unknown type": (
        request(tools=[function(parameters={"type": "object", "properties": {"a": {"type": "any"}}})]),
        "not valid",
        None,
    ),
    "tool_choice alone": (request(tool_choice="auto"), "only allowed when 'tools'", None),
    "parallel_tool_calls alone": (request(parallel_tool_calls=False), "only allowed when 'tools'", None),
    "tool_choice any": (request(tools=[function()], tool_choice="any"), "Supported values", "invalid_value"),
    "tool_choice of an unknown function": (
        request(tools=[function()], tool_choice={"type": "function", "function": {"name": "g"}}),
        "not found in 'tools'",
        None,
    ),
    # strict schemas
    "strict and open": (strict(additionalProperties=True), "'additionalProperties' is required", None),
    "strict with an optional": (strict(required=[]), "Missing 'a'", "invalid_function_parameters"),
    "strict inside": (strict(properties={"a": NESTED}), "Missing 'b'", None),
    "strict with a default": (
        strict(properties={"a": {"type": "string", "default": ""}}),
        "'default' is not permitted",
        None,
    ),
    "strict with oneOf": (strict(properties={"a": {"oneOf": [{"type": "string"}]}}), "not permitted", None),
    "strict without type": (strict(properties={"a": {"description": "x"}}), "must have a 'type' key", None),
    "strict and unknown names": (strict(required=["a", "z"]), "unknown properties", None),
    "response format without name": (
        request(response_format={"type": "json_schema", "json_schema": {"schema": CLOSED}}),
        "name",
        "invalid_value",
    ),
    "response format open and strict": (
        request(
            response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": PARAMETERS}}
        ),
        "additionalProperties",
        "invalid_json_schema",
    ),
    # messages
    "no messages": (request(messages=[]), "empty array", "empty_array"),
    "unknown role": (request({"role": "model", "content": "x"}), "Supported values", "invalid_value"),
    "unknown message field": (
        request({**model("x"), "reasoning_content": "y"}),
        "Unknown parameter",
        "unknown_parameter",
    ),
    "user without content": (request(user(None)), "expected a string, got null", None),
    "user with no parts": (request(user([])), "empty array", "empty_array"),
    "assistant with nothing": (request(model(None)), "expected a string, got null", None),
    "assistant with an empty text": (request(user("a"), model("")), "is empty", None),
    "assistant with an image": (request(model([image({"url": PNG})])), "Supported values", "invalid_value"),
    "image as a string": (request(user([image(PNG)])), "expected an object", "invalid_type"),
    "image of nothing": (request(user([image({})])), "Missing required parameter", None),
    "image by file": (request(user([image({"url": "file:///a.png"})])), "Invalid image URL", "invalid_image_url"),
    "image of another type": (request(user([image({"url": PNG.replace("png", "gif")})])), "unsupported image", None),
    "block of Anthropic's form": (
        request(user([{"type": "image", "source": {}}])),
        "Supported values",
        "invalid_value",
    ),
    "name with a blank": (request({**user("x"), "name": "a b"}), "does not match pattern", None),
    # calls and answers
    "empty calls": (request(model("x") | {"tool_calls": []}), "empty array", "empty_array"),
    "null calls": (request(model("x") | {"tool_calls": None}), "expected an array", "invalid_type"),
    "call unanswered": (
        request(user("q"), model(None, call()), user("n")),
        "did not have response messages: call_1",
        None,
    ),
    "call unanswered at the end": (request(user("q"), model(None, call())), "did not have response messages", None),
    "one of two answered": (request(model(None, call("a"), call("b")), result("a"), user("n")), "messages: b", None),
    "answer without call": (request(user("q"), result()), "must be a response to a preceeding message", None),
    "answer after the user": (
        request(model(None, call()), user("n"), result()),
        "did not have response messages",
        None,
    ),
    "answer of another id": (request(model(None, call()), result("call_2")), "not found in 'tool_calls'", None),
    "answer twice": (request(model(None, call()), result(), result()), "not found in 'tool_calls'", None),
    "id twice": (request(model(None, call(), call()), result(), result()), "Duplicate value", None),
    "id too long": (request(model(None, call("c" * 41)), result("c" * 41)), "too long", "string_above_max_length"),
    "id missing": (request(model(None, call("")), result("")), "Missing required parameter", None),
    "answer without id": (request(model(None, call()), {"role": "tool", "content": "r"}), "tool_call_id", None),
    "answer with an image": (
        request(model(None, call()), result(content=[image({"url": PNG})])),
        "Supported values",
        None,
    ),
    "answer of null": (request(model(None, call()), result(content=None)), "got null", None),
    "arguments as an object": (request(model(None, call(arguments={})), result()), "expected a string", "invalid_type"),
    "arguments that are no JSON": (
        request(model(None, call(arguments='{"a')), result()),
        "JSON text of an object",
        None,
    ),
    "arguments that are empty": (request(model(None, call(arguments="")), result()), "JSON text of an object", None),
    "arguments that are a list": (
        request(model(None, call(arguments="[1]")), result()),
        "JSON text of an object",
        None,
    ),
    "call of a bad name": (request(model(None, call(name="a b")), result()), "does not match pattern", "invalid_value"),
}
TAKEN: dict[str, Mapping[str, Json]] = {
    "plain": request(),
    "system and developer": request(
        {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, user("u")
    ),
    "two users": request(user("a"), user("b")),
    "assistant first": request(model("hi"), user("u")),
    "empty user text": request(user("")),
    "calls and answers": request(user("q"), model(None, call("a"), call("b")), result("b"), result("a"), user("n")),
    "empty answer": request(user("q"), model("", call()), result(content="")),
    "answer in parts": request(user("q"), model(None, call()), result(content=[{"type": "text", "text": "r"}])),
    "image": request(user([{"type": "text", "text": "see"}, image({"url": PNG, "detail": "low"})])),
    "image on the web": request(user([image({"url": "https://x.example/a.png"})])),
    "strict": strict(),
    "limits of a reasoning model": request(model="o3", max_completion_tokens=5, reasoning_effort="low"),
    "forced": request(tools=[function()], tool_choice="required", parallel_tool_calls=False),
    "reasoning sent back to a compatible server": request(
        user("q"), {**model("x"), "reasoning_content": "y"}, user("n"), model="deepseek-reasoner", max_tokens=5
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses(name: str) -> None:
    body, words, code = REFUSED[name]
    with pytest.raises(Refused) as caught:
        check_request(body)
    assert words in caught.value.message
    assert code is None or caught.value.code == code


@pytest.mark.parametrize("name", TAKEN)
def test_it_takes(name: str) -> None:
    check_request(TAKEN[name])
