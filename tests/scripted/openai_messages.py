"""What the chat completions API refuses inside ``messages``: roles, contents, tool calls and their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.scripted.checks import image_fault
from tests.scripted.refusals import expect, refuse

Json = Any

ROLES = ("system", "developer", "user", "assistant", "tool")
NAME = re.compile(r"[^\s<|\\/>]{1,64}")
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "audio", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}
DATA_URL = re.compile(r"data:(image/[a-z+]+);base64,(.*)", re.DOTALL)


def check_messages(body: Mapping[str, Json], *, compatible: bool) -> None:
    """Refuse messages that the API refuses. ``compatible``: reasoning_content is allowed. Raises Refused."""
    expect(
        "messages" in body,
        "Missing required parameter: 'messages'.",
        param="messages",
        code="missing_required_parameter",
    )
    messages = body["messages"]
    expect(
        isinstance(messages, list),
        "Invalid type for 'messages': expected an array.",
        param="messages",
        code="invalid_type",
    )
    empty = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
    expect(messages, empty, param="messages", code="empty_array")
    for place, message in enumerate(messages):
        check_message(message, f"messages[{place}]", compatible=compatible)
    check_answers(messages)


def check_message(message: Json, where: str, *, compatible: bool) -> None:
    expect(
        isinstance(message, Mapping),
        f"Invalid type for '{where}': expected an object.",
        param=where,
        code="invalid_type",
    )
    role = message.get("role")
    known = f"Invalid value: {role!r}. Supported values are: {', '.join(map(repr, ROLES))}."
    expect(role in ROLES, known, param=f"{where}.role", code="invalid_value")
    allowed = FIELDS[role] | ({"reasoning_content"} if compatible and role == "assistant" else set())
    for name in message:
        expect(
            name in allowed, f"Unknown parameter: '{where}.{name}'.", param=f"{where}.{name}", code="unknown_parameter"
        )
    if message.get("name") is not None:
        valid = isinstance(message["name"], str) and NAME.fullmatch(message["name"])
        pattern = f"Invalid '{where}.name': string does not match pattern."
        expect(valid, pattern, param=f"{where}.name", code="invalid_value")
    if role == "assistant":
        check_assistant(message, where)
    else:
        check_content(message.get("content"), role, where)
    if role == "tool":
        identified = isinstance(message.get("tool_call_id"), str) and message["tool_call_id"]
        missing = f"Missing required parameter: '{where}.tool_call_id'."
        expect(identified, missing, param=f"{where}.tool_call_id", code="missing_required_parameter")


def check_assistant(message: Mapping[str, Json], where: str) -> None:
    calls, content = message.get("tool_calls"), message.get("content")
    if "tool_calls" in message:
        array = f"Invalid type for '{where}.tool_calls': expected an array of objects."
        expect(isinstance(calls, list), array, param=f"{where}.tool_calls", code="invalid_type")
        empty = (
            f"Invalid '{where}.tool_calls': empty array. "
            "Expected an array with minimum length 1, but got an empty array instead."
        )
        expect(calls, empty, param=f"{where}.tool_calls", code="empty_array")
        for place, call in enumerate(calls or []):
            check_call(call, f"{where}.tool_calls[{place}]")
        identifiers = [call["id"] for call in calls or []]
        unique = len(set(identifiers)) == len(identifiers)
        expect(unique, f"Duplicate value for 'tool_call_id' in '{where}.tool_calls'.", param=f"{where}.tool_calls")
    if content is None:
        nothing = not calls and message.get("refusal") is None and message.get("audio") is None
        null = "Invalid value for 'content': expected a string, got null."
        expect(not nothing, null, param=f"{where}.content")
        return
    check_content(content, "assistant", where)
    expect(content or calls, "Invalid value for 'content': the assistant message is empty.", param=f"{where}.content")


def check_content(content: Json, role: str, where: str) -> None:
    expect(content is not None, "Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    kind = f"Invalid type for '{where}.content': expected one of a string or array of objects."
    expect(isinstance(content, str | list), kind, param=f"{where}.content", code="invalid_type")
    if isinstance(content, str):
        return
    empty = f"Invalid '{where}.content': empty array. Expected an array with minimum length 1."
    expect(content or role == "assistant", empty, param=f"{where}.content", code="empty_array")
    for place, part in enumerate(content):
        check_part(part, role, f"{where}.content[{place}]")


def check_part(part: Json, role: str, where: str) -> None:
    expect(
        isinstance(part, Mapping), f"Invalid type for '{where}': expected an object.", param=where, code="invalid_type"
    )
    kind, allowed = part.get("type"), PARTS.get(role, ("text",))
    known = f"Invalid value: {kind!r}. Supported values are: {', '.join(map(repr, allowed))}."
    expect(kind in allowed, known, param=f"{where}.type", code="invalid_value")
    value = part.get(kind)
    missing = f"Missing required parameter: '{where}.{kind}'."
    expect(value is not None, missing, param=f"{where}.{kind}", code="missing_required_parameter")
    if kind == "text":
        text = f"Invalid type for '{where}.text': expected a string."
        expect(isinstance(value, str), text, param=f"{where}.text", code="invalid_type")
    if kind == "image_url":
        check_image(value, f"{where}.image_url")


def check_image(value: Json, where: str) -> None:
    kind = f"Invalid type for '{where}': expected an object, but got a {type(value).__name__} instead."
    expect(isinstance(value, Mapping), kind, param=where, code="invalid_type")
    url = value.get("url")
    missing = f"Missing required parameter: '{where}.url'."
    expect(isinstance(url, str), missing, param=f"{where}.url", code="missing_required_parameter")
    if url.startswith(("https://", "http://")):
        return
    found = DATA_URL.fullmatch(url)
    if found is None:
        refuse(
            "Invalid image URL: expected a valid URL or a base64 data URL.",
            param=f"{where}.url",
            code="invalid_image_url",
        )
    fault = image_fault(found[1], found[2])
    expect(not fault, f"You uploaded an unsupported image: {fault}", param=f"{where}.url", code="invalid_image_format")


def check_call(call: Json, where: str) -> None:
    function = call.get("function") if isinstance(call, Mapping) and call.get("type") == "function" else None
    missing = f"Missing required parameter: '{where}.function'."
    expect(isinstance(function, Mapping), missing, param=f"{where}.function", code="missing_required_parameter")
    assert isinstance(function, Mapping)
    identifier = call.get("id")
    missing = f"Missing required parameter: '{where}.id'."
    expect(isinstance(identifier, str) and identifier, missing, param=f"{where}.id", code="missing_required_parameter")
    long = f"Invalid '{where}.id': string too long. Expected a maximum length of 40, but got {len(identifier)}."
    expect(len(identifier) <= 40, long, param=f"{where}.id", code="string_above_max_length")
    named = isinstance(function.get("name"), str) and FUNCTION_NAME.fullmatch(function["name"])
    pattern = f"Invalid '{where}.function.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
    expect(named, pattern, param=f"{where}.function.name", code="invalid_value")
    arguments, place = function.get("arguments"), f"{where}.function.arguments"
    text = f"Invalid type for '{place}': expected a string, but got {type(arguments).__name__} instead."
    expect(isinstance(arguments, str), text, param=place, code="invalid_type")
    expect(is_json_object(str(arguments)), f"Invalid '{place}': expected the JSON text of an object.", param=place)


def is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def check_answers(messages: list[Mapping[str, Json]]) -> None:
    """Every tool call is answered once, right after its message; every answer has its call there."""
    waiting: list[str] = []
    caller = 0
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            check_answer(message["tool_call_id"], waiting, place, any_caller=follows_calls(messages, place))
            continue
        unanswered(waiting, caller)
        waiting, caller = [call["id"] for call in message.get("tool_calls") or []], place
    unanswered(waiting, caller)


def follows_calls(messages: list[Mapping[str, Json]], place: int) -> bool:
    before = next((message for message in reversed(messages[:place]) if message["role"] != "tool"), None)
    return before is not None and bool(before.get("tool_calls"))


def check_answer(identifier: str, waiting: list[str], place: int, *, any_caller: bool) -> None:
    orphan = (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    )
    expect(any_caller, orphan, param=f"messages.[{place}].role")
    unknown = f"Invalid parameter: 'tool_call_id' of '{identifier}' not found in 'tool_calls' of previous message."
    expect(identifier in waiting, unknown, param=f"messages.[{place}].tool_call_id")
    waiting.remove(identifier)


def unanswered(waiting: list[str], caller: int) -> None:
    message = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}"
    )
    expect(not waiting, message, param=f"messages.[{caller}].role")
