"""Arguments that a person changed: read exactly, checked by the tool's schema, frozen as text."""

from __future__ import annotations

import json
from dataclasses import replace

from agents.actions.requests import Verdict
from agents.models import CallKind, ToolCall
from lettaweb.lib.problems import Problem
from tools import arguments


def checked(verdict: Verdict, call: ToolCall) -> Verdict:
    """``verdict`` fit for ``call``; a :class:`Problem` 400 for a yes to what the server cannot run, 422 for
    arguments that the tool does not take. An edit that changes nothing is none."""
    if verdict.kind != "approve":
        return verdict
    if call.kind == CallKind.CLIENT:
        raise Problem(400, f"Tool call '{call.call_id}' runs on the client: give its result, or deny it.")
    if verdict.edited is None:
        return verdict
    return replace(verdict, edited=_edited(verdict.edited, call))


def _edited(text: str, call: ToolCall) -> str | None:
    try:
        given = arguments.parse(text, schema=None)
        if call.tool is not None:
            arguments.check(given, call.tool.json_schema.get("parameters") or {})
    except arguments.ArgumentsError as error:
        raise Problem(422, str(error), extra={"code": "INVALID_ARGUMENTS"}) from None
    if arguments.digest(given) == call.digest:
        return None
    return json.dumps(given, ensure_ascii=False)
