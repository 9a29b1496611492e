"""Rows for pages: agents whose calls wait, in every state, and many of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.models import Agent, CallKind, CallState, Conversation, Message, Run, ToolCall
from agents.models.toolcall import Outcome
from tests.agents.factories import call_part, make_agent, make_answer, make_message, make_run
from tools import arguments
from tools.models import Tool

_numbers = itertools.count(1)
REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "description": "The order to refund."},
        "amount": {"type": "number"},
        "reason": {"type": "string"},
        "notify": {"type": "boolean"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["order", "amount"],
}
GIVEN: dict[str, Any] = {"order": 20418, "amount": 480.0, "reason": "It broke."}


def make_tool(name: str = "refund_order", schema: Mapping[str, Any] = REFUND, **fields: Any) -> Tool:
    described = {"name": name, "description": f"Does {name}.", "parameters": dict(schema)}
    tool, _ = Tool.objects.get_or_create(name=name, defaults={"json_schema": described, **fields})
    return tool


def waiting_call(
    given: Mapping[str, Any] | None = None, *, agent: Agent | None = None, tool: Tool | None = None, **fields: Any
) -> ToolCall:
    """A call that waits in a conversation of its own; its run has ended as one that asks."""
    agent = agent or make_agent(fields.pop("agent_name", f"agent {next(_numbers)}"))
    tool = tool or make_tool()
    conversation = Conversation.objects.create(agent=agent)
    make_message(conversation, "My vase came in pieces.")
    run = make_run(conversation, stop_reason="requires_approval")
    return add_call(run, given, tool=tool, **fields)


def add_call(
    run: Run, given: Mapping[str, Any] | None = None, *, tool: Tool, message: Message | None = None, **fields: Any
) -> ToolCall:
    call_id = f"call_{next(_numbers)}"
    text = json.dumps(GIVEN if given is None else given, ensure_ascii=False)
    message = message or make_answer(run, [call_part(call_id, tool.name, gated=True)])
    assert message.step is not None
    values = {
        "kind": CallKind.SERVER,
        "gated": True,
        "state": CallState.PENDING,
        "risk": tool.risk,
        "asked_at": timezone.now(),
        **fields,
    }
    return ToolCall.objects.create(
        agent=run.agent,
        conversation=run.conversation,
        turn=run,
        step=message.step,
        message=message,
        position=0,
        call_id=call_id,
        name=tool.name,
        tool=tool,
        arguments=text,
        digest=arguments.digest(json.loads(text)),
        **values,
    )


def settled_call(outcome: str = Outcome.RAN, *, ok: bool = True, **fields: Any) -> ToolCall:
    """A call that was decided a minute ago."""
    now = timezone.now() - timedelta(minutes=1)
    values = {"state": CallState.DONE, "outcome": outcome, "result_ok": ok, "decided_at": now, "finished_at": now}
    return waiting_call(fields.pop("given", None), **{**values, "result_text": "done", "returned": True, **fields})


def fill(waiting: int, decided: int) -> None:
    """Many calls, copied inside the database from two that are made here."""
    now, tool = timezone.now(), make_tool()
    one = waiting_call(tool=tool, agent_name="busy")
    done = settled_call(tool=tool, agent=one.agent)
    risk = "CASE n %% 3 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' ELSE 'high' END"
    _copy(one, waiting - 1, {"risk": risk})
    _copy(done, decided - 1, {})
    for ending, minutes in (("7", 5), ("3", 45)):
        rows = ToolCall.objects.filter(state=CallState.PENDING, pk__endswith=ending)
        rows.update(expires_at=now + timedelta(minutes=minutes))


def _copy(call: ToolCall, count: int, changes: Mapping[str, str]) -> None:
    own = {"uuid": "{uuid}", "call_id": "'" + call.state + "' || n", **changes}
    columns = [str(field.column) for field in ToolCall._meta.concrete_fields if not field.primary_key]
    values = [own.get(column, f'"{column}"') for column in columns]
    hexes = "lower(hex(randomblob(16)))" if connection.vendor == "sqlite" else "gen_random_uuid()"
    chosen = ", ".join(values).replace("{uuid}", hexes)
    names = ", ".join(f'"{column}"' for column in columns)
    series = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %s)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"{series} INSERT INTO agents_toolcall ({names}) SELECT {chosen} FROM agents_toolcall, s WHERE id = %s",
            [max(count, 1), call.pk],
        )


# --- forms -------------------------------------------------------------------------------------------


def shown(call: ToolCall, **fields: Any) -> dict[str, Any]:
    """What the form of a call carries."""
    return {"version": call.version, "digest": call.digest, **fields}


def decide(
    client: Client, call: ToolCall, action: str, fields: Mapping[str, Any] | None = None, *, htmx: bool = False
) -> Any:
    """Send a decision form with these fields."""
    headers = {"HX-Request": "true", "HX-Target": "main"} if htmx else {}
    return client.post(
        f"/approvals/{call.wire_id}/decide/", shown(call, action=action, **(fields or {})), headers=headers
    )


def item(call: ToolCall) -> str:
    return f"{call.uuid}:{call.version}:{call.digest}"


def text_of(response: Any) -> str:
    return str(response.content.decode())
