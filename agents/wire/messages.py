"""Stored messages as LettaMessages: one row fans out into several that share its id."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from agents.models import Message, MessageRole, ToolCall
from lettaweb.lib.ids import wire_id

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """How a client wants messages: which call stands for speech, and which types it wants (None: all)."""

    use_assistant_message: bool = True
    tool_name: str = "send_message"
    tool_argument: str = "message"
    types: frozenset[str] | None = None


DEFAULT_VIEW = View()


def date(moment: datetime) -> str:
    """A moment as the wire writes it: whole seconds, ``+00:00``."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def part_otid(row: uuid.UUID, number: int) -> str:
    """The otid of the ``number``-th wire message of a row: the row's uuid with its last byte replaced."""
    last = (row.int & 0x80) | (number & 0x7F)
    return f"{str(row)[:-2]}{last:02x}"


@dataclass(frozen=True, slots=True)
class Head:
    """What all wire messages of one row share."""

    row: uuid.UUID
    at: str
    step: str | None
    run: str | None
    name: str | None = None
    sender: str | None = None
    is_err: bool | None = None

    def message(self, kind: str, otid: str | None, **fields: Any) -> Wire:
        return {
            "id": wire_id("message", self.row),
            "date": self.at,
            "name": self.name,
            "message_type": kind,
            "otid": otid,
            "sender_id": self.sender,
            "step_id": self.step,
            "is_err": self.is_err,
            "seq_id": None,
            "run_id": self.run,
            **fields,
        }


def head_of(row: Message) -> Head:
    """The head of a row; reads ``row.step`` and ``row.run`` (select_related them in lists)."""
    return Head(
        row=row.uuid,
        at=date(row.created_at),
        step=row.step.wire_id if row.step_id and row.step else None,
        run=row.run.wire_id if row.run_id and row.run else None,
        name=row.name,
        sender=row.sender_id,
        is_err=row.is_err,
    )


def messages_of(row: Message, view: View = DEFAULT_VIEW) -> list[Wire]:
    """The LettaMessages of a row, in wire order, as ``view`` wants them."""
    head = head_of(row)
    made = _MAKERS[MessageRole(row.role)](head, row)
    return [shown for message in made for shown in as_seen(message, view)]


def as_seen(message: Wire, view: View) -> Iterator[Wire]:
    """``message`` as ``view`` wants it: a speaking call becomes an assistant message, its return vanishes."""
    if view.use_assistant_message and message["message_type"] == "tool_call_message":
        yield from _wanted(_speech(message, view), view)
    elif view.use_assistant_message and _is_return_of_speech(message, view):
        return
    else:
        yield from _wanted([message], view)


def _wanted(messages: Iterable[Wire], view: View) -> Iterator[Wire]:
    for message in messages:
        if view.types is None or message["message_type"] in view.types:
            yield message


def _speech(message: Wire, view: View) -> list[Wire]:
    calls = message["tool_calls"]
    others = [call for call in calls if call["name"] != view.tool_name]
    if len(others) == len(calls):
        return [message]
    spoken = [_spoken(message, call, view) for call in calls if call["name"] == view.tool_name]
    if others:
        spoken.append({**message, "tool_call": others[0], "tool_calls": others})
    return spoken


def _spoken(message: Wire, call: Wire, view: View) -> Wire:
    try:
        content = str(json.loads(call["arguments"]).get(view.tool_argument, ""))
    except (ValueError, AttributeError):
        content = call["arguments"]
    kept = {key: value for key, value in message.items() if key not in ("tool_call", "tool_calls")}
    return {**kept, "message_type": "assistant_message", "content": content}


def _is_return_of_speech(message: Wire, view: View) -> bool:
    return bool(message["message_type"] == "tool_return_message" and message["name"] == view.tool_name)


# --- one maker per role ----------------------------------------------------------------------------


def content_of(parts: Sequence[Mapping[str, Any]]) -> str | list[Wire]:
    """Text of parts: a string when there is nothing but one text, else content parts."""
    if not any(part["type"] == "image" for part in parts):
        return "\n".join(part["text"] for part in parts if part["type"] == "text")
    return [_content_part(part) for part in parts if part["type"] in ("text", "image")]


def _content_part(part: Mapping[str, Any]) -> Wire:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"], "signature": None}
    if part.get("url"):
        return {"type": "image", "source": {"type": "url", "url": part["url"]}}
    source = {"type": "base64", "media_type": part["media_type"], "data": part["data"], "detail": None}
    return {"type": "image", "source": source}


def _said_by(kind: str) -> Any:
    def make(head: Head, row: Message) -> list[Wire]:
        return [head.message(kind, row.otid, content=content_of(row.parts))]

    return make


def _summary(head: Head, row: Message) -> list[Wire]:
    text = "\n".join(part["text"] for part in row.parts if part["type"] == "text")
    stats = next((part["stats"] for part in row.parts if "stats" in part), None)
    return [head.message("summary_message", row.otid, summary=text, compaction_stats=stats)]


def _assistant(head: Head, row: Message) -> list[Wire]:
    return answer_messages(head, row.parts)


def answer_messages(head: Head, parts: Sequence[Mapping[str, Any]]) -> list[Wire]:
    """The wire messages of a model's answer: what it said in its order, then ungated, then gated calls."""
    made: list[Wire] = []
    for kind, group in groupby((p for p in parts if p["type"] != "call"), key=lambda p: p["type"]):
        made.append(_said(head, kind, list(group), len(made)))
    calls = [part for part in parts if part["type"] == "call"]
    ungated = [wire_call(part) for part in calls if not part.get("gated")]
    gated = [wire_call(part) for part in calls if part.get("gated")]
    if ungated:
        otid = part_otid(head.row, len(made))
        made.append(head.message("tool_call_message", otid, tool_call=ungated[0], tool_calls=ungated))
    if gated:
        made.append(request_message(head, gated))
    return made


def _said(head: Head, kind: str, group: list[Mapping[str, Any]], number: int) -> Wire:
    otid = part_otid(head.row, number)
    if kind == "reasoning":
        text = "\n".join(part["text"] for part in group)
        signature = group[-1].get("signature") or None
        return head.message("reasoning_message", otid, source="reasoner_model", reasoning=text, signature=signature)
    if kind == "redacted":
        data = group[-1]["data"]
        return head.message("hidden_reasoning_message", otid, state="redacted", hidden_reasoning=data)
    return head.message("assistant_message", otid, content=content_of(group))


def wire_call(part: Mapping[str, Any]) -> Wire:
    return {"name": part["name"], "arguments": part["arguments"], "tool_call_id": part["id"]}


def request_message(head: Head, calls: Sequence[Wire]) -> Wire:
    """The approval request for gated ``calls`` (wire calls) of the row ``head``."""
    otid = wire_id("message", head.row)
    return head.message("approval_request_message", otid, tool_call=calls[0], tool_calls=list(calls))


def request_for(row: Message, calls: Sequence[ToolCall]) -> Wire:
    """The approval request that stands for waiting ``calls`` of the stored answer ``row``."""
    shown = [{"name": c.name, "arguments": c.runs_with, "tool_call_id": c.call_id} for c in calls]
    return request_message(head_of(row), shown)


def _tool(head: Head, row: Message) -> list[Wire]:
    return [return_message(head, row.parts)]


def return_message(head: Head, parts: Sequence[Mapping[str, Any]]) -> Wire:
    """One tool_return_message for the result ``parts`` of a set; the first one stands on top."""
    returns = [wire_return(part) for part in parts]
    first = next((p for p in parts if p.get("gated")), parts[0])
    top = wire_return(first)
    named = Head(head.row, head.at, head.step, head.run, first["name"], head.sender, head.is_err)
    return named.message(
        "tool_return_message",
        part_otid(head.row, 0),
        tool_return=first["text"],
        status=top["status"],
        tool_call_id=top["tool_call_id"],
        stdout=top["stdout"],
        stderr=top["stderr"],
        tool_returns=returns,
    )


def wire_return(part: Mapping[str, Any]) -> Wire:
    return {
        "type": "tool",
        "tool_return": part.get("content") or part["text"],
        "status": part["status"],
        "tool_call_id": part["id"],
        "stdout": part.get("stdout"),
        "stderr": part.get("stderr"),
    }


def _approval(head: Head, row: Message) -> list[Wire]:
    approvals = [part["sent"] for part in row.parts if part["type"] == "decision"]
    first = approvals[0] if approvals else {}
    return [
        head.message(
            "approval_response_message",
            row.otid,
            approvals=approvals,
            approve=first.get("approve"),
            approval_request_id=row.approval_request_id,
            reason=first.get("reason"),
        )
    ]


_MAKERS = {
    MessageRole.SYSTEM: _said_by("system_message"),
    MessageRole.USER: _said_by("user_message"),
    MessageRole.ASSISTANT: _assistant,
    MessageRole.TOOL: _tool,
    MessageRole.APPROVAL: _approval,
    MessageRole.SUMMARY: _summary,
}
