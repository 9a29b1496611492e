"""Reads message requests: plain functions, since this is the road that every message takes.

Raises a :class:`Problem` 422 that names the field. Unknown fields are ignored.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from agents.actions.requests import Approval, Input, MessageRequest, Verdict
from agents.outbox import check_url
from agents.serializers.content import parts_of
from lettaweb.lib.problems import Problem

ROLES = ("user", "system", "assistant")
MAX_STEPS = 1000
OPTIONS = ("use_assistant_message", "assistant_message_tool_name", "assistant_message_tool_kwarg")


def message_request(body: Any, *, streaming: bool | None = None) -> MessageRequest:
    """Read the body of a message route. ``streaming``: what the route says, None: what the body says."""
    if not isinstance(body, Mapping):
        raise invalid("body", "a JSON object is expected")
    streams = bool(body.get("streaming", False)) if streaming is None else streaming
    _check_streaming(body, streams)
    approval, inputs = _items(_messages(body))
    return MessageRequest(
        inputs=tuple(inputs),
        approval=approval,
        options=_options(body, streams),
        streaming=streams,
        background=_flag(body, "background"),
        include_pings=_optional_flag(body, "include_pings"),
        callback_url=check_url(_text(body, "callback_url")),
    )


def invalid(field: str, why: str) -> Problem:
    return Problem(422, f"{field}: {why}")


def _check_streaming(body: Mapping[str, Any], streams: bool) -> None:
    if not streams and (body.get("stream_tokens") or body.get("background")):
        raise Problem(
            422,
            "Streaming options set without streaming enabled. Set streaming=true to use stream_tokens or background.",
        )


def _messages(body: Mapping[str, Any]) -> list[Any]:
    messages, given = body.get("messages"), body.get("input")
    if messages is not None and given is not None:
        raise invalid("messages", "give either messages or input, not both")
    if given is not None:
        return [{"role": "user", "content": given}]
    if not isinstance(messages, list):
        raise invalid("messages", "a list of messages is required")
    if not messages:
        raise Problem(422, "Messages must not be empty")
    return messages


def _items(items: Sequence[Any]) -> tuple[Approval | None, list[Input]]:
    approval: Approval | None = None
    inputs: list[Input] = []
    for number, item in enumerate(items):
        where = f"messages[{number}]"
        if not isinstance(item, Mapping):
            raise invalid(where, "a message object is expected")
        kind = _kind(item, where)
        if kind == "message":
            inputs.append(_input(item, where))
        elif approval is not None or inputs:
            raise invalid(where, "an approval must be the first message, and there can be only one")
        else:
            approval = _approval(item, where) if kind == "approval" else _tool_returns(item, where)
    return approval, inputs


def _kind(item: Mapping[str, Any], where: str) -> str:
    kind = item.get("type")
    if kind in ("approval", "tool_return", "message"):
        return str(kind)
    if kind is not None:
        raise invalid(f"{where}.type", "must be message, approval or tool_return")
    if "tool_returns" in item:
        return "tool_return"
    decides = any(item.get(name) is not None for name in ("approvals", "approve", "approval_request_id"))
    return "approval" if decides else "message"


def _input(item: Mapping[str, Any], where: str) -> Input:
    role = item.get("role")
    if role not in ROLES:
        raise invalid(f"{where}.role", "must be user, system or assistant")
    parts = parts_of(item.get("content"), f"{where}.content")
    names = {name: _text(item, name) for name in ("name", "sender_id", "group_id")}
    otid = _text(item, "otid") or str(uuid.uuid4())
    return Input(str(role), parts, {"otid": otid[:200], **{key: value and value[:200] for key, value in names.items()}})


# --- approvals ---------------------------------------------------------------------------------------


def _approval(item: Mapping[str, Any], where: str) -> Approval:
    approvals = item.get("approvals")
    if approvals is None:
        return _legacy(item, where)
    if not isinstance(approvals, list) or not approvals:
        raise invalid(f"{where}.approvals", "a list with at least one decision is required")
    verdicts = [_verdict(given, f"{where}.approvals[{n}]") for n, given in enumerate(approvals)]
    return Approval(tuple(verdicts), otid=_text(item, "otid"))


def _legacy(item: Mapping[str, Any], where: str) -> Approval:
    approve, request_id = item.get("approve"), item.get("approval_request_id")
    if not isinstance(approve, bool):
        raise invalid(f"{where}.approve", "true or false is required")
    if not isinstance(request_id, str) or not request_id:
        raise invalid(f"{where}.approval_request_id", "the id of the approval request is required")
    reason = _text(item, "reason")
    sent = {"type": "approval", "tool_call_id": request_id, "approve": approve, "reason": reason}
    verdict = Verdict(request_id, "approve" if approve else "deny", sent, reason=reason)
    return Approval((verdict,), legacy=True, otid=_text(item, "otid"))


def _verdict(given: Any, where: str) -> Verdict:
    if not isinstance(given, Mapping):
        raise invalid(where, "a decision object is expected")
    kind = given.get("type") or ("tool" if "tool_return" in given else "approval")
    if kind == "tool":
        return _tool_return(given, where)
    if kind != "approval":
        raise invalid(f"{where}.type", "must be approval or tool")
    approve = given.get("approve")
    if not isinstance(approve, bool):
        raise invalid(f"{where}.approve", "true or false is required")
    call_id, reason = _call_id(given, where), _text(given, "reason")
    sent = {"type": "approval", "tool_call_id": call_id, "approve": approve, "reason": reason}
    return Verdict(call_id, "approve" if approve else "deny", sent, reason=reason)


def _tool_returns(item: Mapping[str, Any], where: str) -> Approval:
    returns = item.get("tool_returns")
    if not isinstance(returns, list) or not returns:
        raise invalid(f"{where}.tool_returns", "a list with at least one tool return is required")
    verdicts = [_tool_return(given, f"{where}.tool_returns[{n}]") for n, given in enumerate(returns)]
    return Approval(tuple(verdicts), otid=_text(item, "otid"))


def _tool_return(given: Any, where: str) -> Verdict:
    if not isinstance(given, Mapping):
        raise invalid(where, "a tool return object is expected")
    call_id, status = _call_id(given, where), given.get("status")
    if status not in ("success", "error"):
        raise invalid(f"{where}.status", "must be success or error")
    text, content = _returned(given.get("tool_return"), f"{where}.tool_return")
    stdout, stderr = _lines(given, "stdout", where), _lines(given, "stderr", where)
    sent = {
        "type": "tool",
        "tool_call_id": call_id,
        "tool_return": text if content is None else given["tool_return"],
        "status": status,
        "stdout": stdout,
        "stderr": stderr,
    }
    return Verdict(
        call_id, "answer", sent,
        ok=status == "success", text=text, content=content, stdout=stdout or (), stderr=stderr or (),
    )  # fmt: skip


def _returned(value: Any, where: str) -> tuple[str, list[dict[str, Any]] | None]:
    if isinstance(value, str):
        return value, None
    if not isinstance(value, list):
        raise invalid(where, "a text or a list of content parts is required")
    parts = parts_of(value, where, blank=True)
    return "\n".join(part["text"] for part in parts if part["type"] == "text"), [dict(part) for part in value]


def _call_id(given: Mapping[str, Any], where: str) -> str:
    call_id = given.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise invalid(f"{where}.tool_call_id", "the id of the tool call is required")
    return call_id


def _lines(given: Mapping[str, Any], name: str, where: str) -> list[str] | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise invalid(f"{where}.{name}", "a list of texts is expected")
    return value


# --- options -----------------------------------------------------------------------------------------


def _options(body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"stream_tokens": streams and _flag(body, "stream_tokens")}
    options |= {name: body[name] for name in OPTIONS if body.get(name) is not None}
    options["max_steps"] = _steps(body)
    types = body.get("include_return_message_types")
    if types is not None:
        if not isinstance(types, list) or not all(isinstance(kind, str) for kind in types):
            raise invalid("include_return_message_types", "a list of message types is expected")
        options["include_return_message_types"] = types
    if body.get("client_tools"):
        options["client_tools"] = _client_tools(body["client_tools"])
    for name, value in (("override_model", _text(body, "override_model")), ("override_system", _system(body))):
        if value:
            options[name] = value
    return options


def _steps(body: Mapping[str, Any]) -> int:
    steps = body.get("max_steps", 50)
    if steps is None:
        return 50
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_STEPS:
        raise invalid("max_steps", f"a whole number from 1 to {MAX_STEPS} is expected")
    return steps


def _system(body: Mapping[str, Any]) -> str | None:
    return _text(body, "override_system") or _text(body, "system")


def _client_tools(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise invalid("client_tools", "a list of tools is expected")
    return [_client_tool(tool, f"client_tools[{n}]") for n, tool in enumerate(given)]


def _client_tool(tool: Any, where: str) -> dict[str, Any]:
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        raise invalid(f"{where}.name", "the name of the tool is required")
    parameters = tool.get("parameters")
    if parameters is not None and (not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object"):
        raise invalid(f"{where}.parameters", "a JSON schema of type object is expected")
    shown = {"type": "object", "properties": {}, **(parameters or {})}
    return {"name": tool["name"], "description": _text(tool, "description"), "parameters": shown}


def _flag(body: Mapping[str, Any], name: str) -> bool:
    return bool(_optional_flag(body, name))


def _optional_flag(body: Mapping[str, Any], name: str) -> bool | None:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(name, "true or false is expected")
    return value


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(name, "a text is expected")
    return value
