"""Rows for pages: agents whose calls wait, in every state, and many of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from agents.models import Agent, CallKind, CallState, Conversation, Message, Run, RunStatus, Step, ToolCall
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


def add_call(run: Run, given: Mapping[str, Any] | None = None, *, tool: Tool, message: Message | None = None, **fields: Any) -> ToolCall:
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
        agent=run.agent, conversation=run.conversation, turn=run, step=message.step, message=message, position=0,
        call_id=call_id, name=tool.name, tool=tool, arguments=text, digest=arguments.digest(json.loads(text)), **values,
    )  # fmt: skip


def settled_call(outcome: str = Outcome.RAN, *, ok: bool = True, **fields: Any) -> ToolCall:
    """A call that was decided a minute ago."""
    now = timezone.now() - timedelta(minutes=1)
    values = {"state": CallState.DONE, "outcome": outcome, "result_ok": ok, "decided_at": now, "finished_at": now}
    return waiting_call(**{**values, "result_text": "done", "returned": True, **fields})


def fill(waiting: int, decided: int) -> None:
    """Many calls at once, in one conversation each hundred."""
    tool, agent, now = make_tool(), make_agent("busy"), timezone.now()
    conversation = Conversation.objects.create(agent=agent)
    run = Run.objects.create(agent=agent, conversation=conversation, status=RunStatus.COMPLETED)
    step = Step.objects.create(run=run, agent=agent, number=0)
    message = make_message(conversation, role="assistant", parts=[], run=run, step=step)
    text = json.dumps(GIVEN)
    shared = {
        "agent": agent, "conversation": conversation, "turn": run, "step": step, "message": message, "position": 0,
        "name": tool.name, "tool": tool, "kind": CallKind.SERVER, "gated": True, "arguments": text, "digest": "0" * 64,
    }  # fmt: skip
    risks = ("low", "medium", "high")
    rows = [
        ToolCall(
            **shared, call_id=f"w{number}", state=CallState.PENDING, risk=risks[number % 3], asked_at=now,
            expires_at=now + timedelta(minutes=number % 90) if number % 5 == 0 else None,
        )
        for number in range(waiting)
    ]  # fmt: skip
    rows += [
        ToolCall(
            **shared, call_id=f"d{number}", state=CallState.DONE, outcome=Outcome.RAN, result_ok=True, returned=True,
            decided_at=now - timedelta(seconds=number), asked_at=now - timedelta(hours=1),
        )
        for number in range(decided)
    ]  # fmt: skip
    ToolCall.objects.bulk_create(rows, batch_size=500)


# --- forms -------------------------------------------------------------------------------------------


def shown(call: ToolCall, **fields: Any) -> dict[str, Any]:
    """What the form of a call carries."""
    return {"version": call.version, "digest": call.digest, **fields}


def decide(client: Client, call: ToolCall, action: str, *, htmx: bool = False, **fields: Any) -> Any:
    headers = {"HX-Request": "true", "HX-Target": "main"} if htmx else {}
    return client.post(f"/approvals/{call.wire_id}/decide/", shown(call, action=action, **fields), headers=headers)


def item(call: ToolCall) -> str:
    return f"{call.uuid}:{call.version}:{call.digest}"


def text_of(response: Any) -> str:
    return str(response.content.decode())
