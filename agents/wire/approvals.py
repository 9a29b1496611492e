"""Calls that people decide, as the desk shows them: rows of the queue, and one call with all that belongs to it.

Everything here is masked by :mod:`agents.wire.redact`. Moments are ISO 8601 with microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from agents.models import CallComment, CallKind, CallState, Decision, Driver, Message, ToolCall
from agents.wire import redact
from agents.wire.messages import messages_of
from agents.wire.sentences import human, sentence, title
from tools.arguments.shape import properties_of, required_of

Wire = dict[str, Any]


def approval_row(call: ToolCall) -> Wire:
    """A call as a row of the queue; reads what ``desk.find.rows()`` selects."""
    run = call.step.run
    return {
        "id": call.wire_id,
        "version": call.version,
        "digest": call.digest,
        "state": call.state,
        "outcome": call.outcome or None,
        "kind": call.kind,
        "title": title(call),
        "sentence": sentence(call),
        "agent": {"id": call.agent.wire_id, "name": call.agent.name},
        "conversation_id": call.conversation.wire_id,
        "run_id": run.wire_id,
        "message_id": call.message.wire_id,
        "batch_id": (run.metadata or {}).get("batch_id") if run.driver == Driver.BATCH else None,
        "tool": {"id": call.tool.wire_id if call.tool else None, "name": call.name},
        "tool_call_id": call.call_id,
        "risk": call.risk,
        "arguments": redact.arguments_of(call),
        "asked_at": _iso(call.asked_at),
        "expires_at": _iso(call.expires_at),
        "expire_action": call.expire_action if call.expires_at else None,
        "overdue": call.overdue,
        "held_by": str(call.held_by) if call.held_by else None,
        "held_until": _iso(call.held_until),
        "decided_by": str(call.decided_by) if call.decided_by else None,
        "decided_at": _iso(call.decided_at),
        "reason": call.reason,
        "edited": call.edited_arguments is not None,
    }


def approval_detail(
    call: ToolCall,
    *,
    siblings: Iterable[ToolCall],
    messages: Iterable[Message],
    decisions: Iterable[Decision],
    comments: Iterable[CallComment],
) -> Wire:
    """A call with its fields, why it asks, its set, the last messages, its history and what people said."""
    secrets = redact.of_agent(call.agent)
    return {
        **approval_row(call),
        "proposed_arguments": redact.proposed_of(call),
        "masked": redact.masks(call),
        "fields": fields_of(call),
        "schema": schema_of(call),
        "asks_because": asks_because(call),
        "said": said_before(call),
        "set": [_sibling(other) for other in siblings],
        "messages": [redact.message(wire, secrets) for row in messages for wire in messages_of(row)],
        "history": [decision_row(decision, call) for decision in decisions],
        "comments": [comment_row(comment) for comment in comments],
        "result": _result(call),
    }


def schema_of(call: ToolCall) -> Mapping[str, Any]:
    """The JSON schema of the arguments of ``call``; empty when nobody knows it any more."""
    return redact.of_call(call).schema


def fields_of(call: ToolCall) -> list[Wire]:
    """The arguments one by one, labelled by the tool's schema: what it declares first, in its order.

    ``given`` is false for an argument that the model left out, ``proposed`` what it said before an edit.
    """
    secrets = redact.of_call(call)
    schema, shown, before = secrets.schema, redact.arguments_of(call), redact.proposed_of(call)
    declared = properties_of(schema)
    return [
        {
            "name": name,
            "label": str(_part(declared, name).get("title") or human(name).capitalize() or name),
            "description": str(_part(declared, name).get("description") or ""),
            "schema": dict(_part(declared, name)),
            "required": name in required_of(schema),
            "given": name in shown,
            "value": shown.get(name),
            "proposed": before.get(name),
            "changed": shown.get(name) != before.get(name) or (name in shown) != (name in before),
            "secret": secrets.is_secret(name),
        }
        for name in dict.fromkeys([*declared, *shown, *before])
    ]


def asks_because(call: ToolCall) -> str:
    """Why a person must look, in one sentence."""
    if call.state == CallState.UNKNOWN:
        return "The server was interrupted while this call ran; nobody knows whether it took effect."
    if call.kind == CallKind.CLIENT:
        return f"{call.name} runs at the client: it sends the result, or a person answers."
    return f"Every call of {call.name} by this agent needs a person."


def said_before(call: ToolCall) -> Wire:
    """What the model said and thought in the answer that holds the call."""
    said = {kind: _texts(call.message, kind) for kind in ("text", "reasoning")}
    return {"text": said["text"], "reasoning": said["reasoning"]}


def _texts(message: Message, kind: str) -> str:
    return "\n".join(str(part["text"]) for part in message.parts if part["type"] == kind)


def _sibling(call: ToolCall) -> Wire:
    names = ("id", "version", "state", "outcome", "title", "tool_call_id", "decided_by")
    row = approval_row(call)
    return {name: row[name] for name in names}


def decision_row(decision: Decision, call: ToolCall) -> Wire:
    """One entry of the history; changed arguments are masked."""
    edits = decision.kind in ("edit", "rerun")
    secrets = redact.of_call(call)
    return {
        "id": decision.wire_id,
        "kind": decision.kind,
        "by": decision.actor_name,
        "via": decision.via,
        "at": _iso(decision.created_at),
        "reason": decision.reason,
        "before": secrets.mask_text(decision.before) if decision.before and edits else decision.before,
        "after": secrets.mask_text(decision.after) if decision.after and edits else decision.after,
    }


def comment_row(comment: CallComment) -> Wire:
    return {
        "id": comment.wire_id,
        "by": comment.author_name,
        "at": _iso(comment.created_at),
        "text": comment.text,
    }


def _result(call: ToolCall) -> Wire | None:
    if call.state != CallState.DONE:
        return None
    return {
        "ok": call.result_ok,
        "text": call.result_text,
        "stdout": call.stdout,
        "stderr": call.stderr,
        "at": _iso(call.finished_at),
    }


def _part(declared: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = declared.get(name)
    return found if isinstance(found, Mapping) else {}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
