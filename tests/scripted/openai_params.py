"""What the chat completions API refuses outside of ``messages``: fields, model, sampling, tools, size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.scripted.checks import schema_fault
from tests.scripted.models import OpenAIModel, openai_model
from tests.scripted.openai_messages import check_messages
from tests.scripted.openai_schema import Place, check_response_format, check_strict
from tests.scripted.refusals import Refused, expect, refuse

Json = Any

FIELDS = {
    "messages", "model", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls",
    "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
    "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
    "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
}  # fmt: skip
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]+")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
RANGES = {"temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2)}


def check_request(body: Json) -> None:
    """Refuse what the chat completions API refuses. Raises Refused."""
    expect(isinstance(body, dict), "We could not parse the JSON body of your request. The API expects a JSON payload.")
    for name in body:
        expect(name in FIELDS, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    model = check_model(body)
    check_limits(body, model)
    check_sampling(body, model)
    check_stream(body)
    check_tools(body)
    check_choice(body)
    check_response_format(body.get("response_format"))
    check_messages(body, compatible=model.compatible)
    check_window(body, model)


def check_model(body: Mapping[str, Json]) -> OpenAIModel:
    name = body.get("model")
    expect(isinstance(name, str) and name, "you must provide a model parameter")
    model = openai_model(str(name))
    if model is None:
        message = f"The model `{name}` does not exist or you do not have access to it."
        raise Refused(message, status=404, code="model_not_found")
    return model


def check_limits(body: Mapping[str, Json], model: OpenAIModel) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if value is None:
            continue
        wrong_type = f"Invalid type for '{name}': expected an integer, but got {value!r} instead."
        expect(type(value) is int, wrong_type, param=name, code="invalid_type")
        below = f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {value} instead."
        expect(value >= 1, below, param=name, code="integer_below_min_value")
    both = body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None
    expect(not both, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if model.reasoning and not model.compatible and body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        refuse(message, param="max_tokens", code="unsupported_parameter")


def check_sampling(body: Mapping[str, Json], model: OpenAIModel) -> None:
    for name, (low, high) in RANGES.items():
        value = body.get(name)
        if value is None:
            continue
        fits = isinstance(value, int | float) and low <= value <= high
        expect(fits, f"Invalid '{name}': expected a number from {low} to {high}.", param=name, code="invalid_value")
        if model.reasoning and not model.compatible and value != (1 if name in ("temperature", "top_p") else 0):
            message = f"Unsupported value: '{name}' does not support {value} with this model, only its default."
            refuse(message, param=name, code="unsupported_value")
    effort = body.get("reasoning_effort")
    if effort is not None:
        supported = "Unrecognized request argument supplied: reasoning_effort"
        expect(model.reasoning, supported, param="reasoning_effort", code="unsupported_parameter")
        known = f"Invalid value: '{effort}'. Supported values are: {', '.join(EFFORTS)}."
        expect(effort in EFFORTS, known, param="reasoning_effort", code="invalid_value")


def check_stream(body: Mapping[str, Json]) -> None:
    options = body.get("stream_options")
    if options is None:
        return
    alone = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    expect(body.get("stream") is True, alone, param="stream_options")
    for name in options:
        known = name in ("include_usage", "include_obfuscation")
        expect(known, f"Unknown parameter: 'stream_options.{name}'.", param="stream_options", code="unknown_parameter")


# --- tools ----------------------------------------------------------------------------------------


def check_tools(body: Mapping[str, Json]) -> None:
    tools = body.get("tools")
    if tools is None:
        return
    expect(isinstance(tools, list), "Invalid type for 'tools': expected an array.", param="tools", code="invalid_type")
    empty = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."
    expect(tools, empty, param="tools", code="empty_array")
    long = f"Invalid 'tools': array too long. Expected an array with maximum length 128, but got {len(tools)} instead."
    expect(len(tools) <= 128, long, param="tools", code="array_above_max_length")
    for place, tool in enumerate(tools):
        check_tool(tool, f"tools[{place}]")
    counts = Counter(tool["function"]["name"] for tool in tools)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    expect(
        repeated is None, f"Invalid 'tools': function names must be unique, found '{repeated}' twice.", param="tools"
    )


def check_tool(tool: Json, where: str) -> None:
    function = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
    missing = f"Missing required parameter: '{where}.function'."
    expect(isinstance(function, Mapping), missing, param=f"{where}.function", code="missing_required_parameter")
    assert isinstance(function, Mapping)
    for name in function:
        known = name in ("name", "description", "parameters", "strict")
        unknown = f"Unknown parameter: '{where}.function.{name}'."
        expect(known, unknown, param=f"{where}.function.{name}", code="unknown_parameter")
    check_function_name(function.get("name"), f"{where}.function.name")
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    broken = f"Invalid schema for function '{function['name']}': "
    fault = schema_fault(parameters)
    param, code = f"{where}.function.parameters", "invalid_function_parameters"
    expect(not fault, f"{broken}{fault}", param=param, code=code)
    kind = parameters.get("type", "object") if isinstance(parameters, Mapping) else None
    expect(
        kind == "object",
        f"{broken}schema must be a JSON Schema of 'type: \"object\"', got {kind!r}.",
        param=param,
        code=code,
    )
    if function.get("strict"):
        check_strict(parameters, Place(broken, param, code))


def check_function_name(name: Json, where: str) -> None:
    missing = f"Missing required parameter: '{where}'."
    expect(isinstance(name, str), missing, param=where, code="missing_required_parameter")
    pattern = f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]+$'."
    expect(FUNCTION_NAME.fullmatch(name), pattern, param=where, code="invalid_value")
    length = f"Invalid '{where}': string too long. Expected a maximum length of 64, but got {len(name)}."
    expect(len(name) <= 64, length, param=where, code="string_above_max_length")


def check_choice(body: Mapping[str, Json]) -> None:
    for name in ("tool_choice", "parallel_tool_calls"):
        alone = body.get(name) is not None and not body.get("tools")
        expect(not alone, f"'{name}' is only allowed when 'tools' are specified.", param=name)
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "none", "required"):
        return
    wrong = f"Invalid value: {choice!r}. Supported values are: 'none', 'auto', and 'required'."
    named = (
        isinstance(choice, Mapping) and choice.get("type") == "function" and isinstance(choice.get("function"), Mapping)
    )
    expect(named, wrong, param="tool_choice", code="invalid_value")
    wanted = choice["function"].get("name")
    names = {tool["function"]["name"] for tool in body["tools"]}
    expect(wanted in names, f"Tool choice 'function:{wanted}' not found in 'tools' parameter.", param="tool_choice")


# --- size -----------------------------------------------------------------------------------------


def check_window(body: Mapping[str, Json], model: OpenAIModel) -> None:
    size = estimated_tokens(body)
    if size > model.window:
        message = (
            f"This model's maximum context length is {model.window} tokens. "
            f"However, your messages resulted in {size} tokens. Please reduce the length of the messages."
        )
        refuse(message, param="messages", code="context_length_exceeded")


def estimated_tokens(body: Mapping[str, Json]) -> int:
    """About a token for four characters of text. At least 1."""
    return max(1, (_size(body.get("messages")) + _size(body.get("tools"))) // 4)


def _size(value: Json) -> int:
    if isinstance(value, str):
        return 6000 if value.startswith("data:image/") else len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(item) for key, item in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else 4
