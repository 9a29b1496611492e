"""Stored messages in the form of batch results, context windows and searches: one object per row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.models import Message, MessageRole
from agents.wire.messages import Wire
from lettaweb.lib.ids import wire_id
from tools.wire import SYSTEM_USER, moment

Part = Mapping[str, Any]


def internal_message(row: Message) -> Wire:
    """A row as one object; reads ``row.agent``, ``conversation``, ``run`` and ``step`` (select_related them)."""
    results = [_result(part) for part in row.parts if part["type"] == "result"]
    calls = [part for part in row.parts if part["type"] == "call"]
    sent = [part["sent"] for part in row.parts if part["type"] == "decision"]
    return {
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
        "id": row.wire_id,
        "agent_id": row.agent.wire_id,
        "model": row.model,
        "role": MessageRole.APPROVAL if any(part.get("gated") for part in calls) else row.role,
        "content": content_parts(row.parts),
        "name": row.name,
        "tool_calls": [_call(part) for part in calls] or None,
        "tool_call_id": next((part["id"] for part in row.parts if part["type"] in ("call", "result")), None),
        "step_id": row.step.wire_id if row.step else None,
        "run_id": row.run.wire_id if row.run else None,
        "otid": row.otid,
        "tool_returns": results,
        "group_id": row.group_id,
        "sender_id": row.sender_id,
        "batch_item_id": wire_id("batch_item", row.batch_item) if row.batch_item else None,
        "conversation_id": row.conversation.wire_name,
        "is_err": row.is_err,
        **_decided(row, sent),
    }


def content_parts(parts: Sequence[Part]) -> list[Wire]:
    """What was said and thought, in order; calls, results and decisions have fields of their own."""
    makers = {"text": _text, "reasoning": _reasoning, "redacted": _redacted, "image": _image, "result": _returned}
    return [makers[part["type"]](part) for part in parts if part["type"] in makers]


def _text(part: Part) -> Wire:
    return {"type": "text", "text": part["text"], "signature": None}


def _returned(part: Part) -> Wire:
    return {"type": "text", "text": part["text"], "signature": None}


def _reasoning(part: Part) -> Wire:
    signature = part.get("signature") or None
    return {"type": "reasoning", "is_native": True, "reasoning": part["text"], "signature": signature}


def _redacted(part: Part) -> Wire:
    return {"type": "redacted_reasoning", "data": part["data"]}


def _image(part: Part) -> Wire:
    if part.get("url"):
        return {"type": "image", "source": {"type": "url", "url": part["url"]}}
    return {"type": "image", "source": {"type": "base64", "media_type": part["media_type"], "data": part["data"]}}


def _call(part: Part) -> Wire:
    arguments = part["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": part["id"], "function": {"name": part["name"], "arguments": text}, "type": "function"}


def _result(part: Part) -> Wire:
    return {
        "tool_call_id": part["id"],
        "status": part["status"],
        "stdout": part.get("stdout"),
        "stderr": part.get("stderr"),
        "func_response": part["text"],
    }


def _decided(row: Message, sent: Sequence[Part]) -> Wire:
    first: Part = sent[0] if sent else {}
    return {
        "approval_request_id": row.approval_request_id,
        "approve": first.get("approve"),
        "denial_reason": first.get("reason"),
        "approvals": list(sent),
    }
