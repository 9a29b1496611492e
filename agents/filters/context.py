"""What stands around a waiting call: why it asks, what was said before it, what people said about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from agents.models import CallComment, CallKind, CallState, Decision, DecisionKind, Message, MessageRole, ToolCall
from agents.models.toolcall import WAITING, Outcome
from agents.wire.fields import shown_text
from agents.wire.sentences import title
from tools import rules

LAST = 8
ONE_DENIED = "Another call of {} was denied in this turn."


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was said. ``kind``: said, thinks, acts, returns or fails."""

    who: str
    text: str
    kind: str = "said"
    at: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a call's history: a decision or a comment, in words."""

    at: datetime
    who: str
    what: str
    reason: str = ""
    comment: bool = False


# --- why ---------------------------------------------------------------------------------------------


def why(call: ToolCall) -> list[str]:
    """Why a person is asked, in sentences."""
    return [said for said in (_cause(call), _company(call), _earlier(call)) if said]


def _cause(call: ToolCall) -> str:
    if call.state == CallState.UNKNOWN:
        return "The server was interrupted while this call ran. It may have taken effect or not; please find out."
    if call.kind == CallKind.CLIENT:
        return f"{call.name} runs at the program that talks to the agent. You can answer in its place, or deny it."
    if _has_rule(call):
        return f"Every call of {call.name} by {call.agent.name} needs a person."
    return f"{call.name} needed a person when it was asked; that rule has been taken away since."


def _has_rule(call: ToolCall) -> bool:
    try:
        return rules.requires_approval(rules.parse_rules(call.agent.tool_rules or []), call.name)
    except rules.RulesError:
        return False


def _company(call: ToolCall) -> str:
    found = ToolCall.objects.filter(message_id=call.message_id, gated=True).aggregate(
        all=Count("pk"), waiting=Count("pk", filter=Q(state__in=WAITING))
    )
    if found["all"] < 2:
        return ""
    together = f"It is one of {found['all']} calls that were asked together."
    return f"{together} None of them runs until all are decided; {found['waiting']} wait."


def _earlier(call: ToolCall) -> str:
    rows = ToolCall.objects.filter(turn_id=call.turn_id, name=call.name).exclude(pk=call.pk)
    denied = rows.filter(outcome=Outcome.DENIED).count()
    if not denied:
        return ""
    return (
        f"{denied} other calls of {call.name} were denied in this turn." if denied > 1 else ONE_DENIED.format(call.name)
    )


# --- what was said -----------------------------------------------------------------------------------


def talk_before(call: ToolCall) -> list[Said]:
    """The last things that were said up to the call."""
    rows = Message.objects.filter(conversation_id=call.conversation_id, pk__lte=call.message_id)
    newest = list(rows.exclude(role=MessageRole.SYSTEM).select_related("agent").order_by("-pk")[:LAST])
    return talk(list(reversed(newest)))[-LAST:]


def talk(messages: list[Message]) -> list[Said]:
    """Messages as lines for people, oldest first; arguments with masks, texts cut where a screen ends."""
    asking = [message for message in messages if message.role == MessageRole.ASSISTANT]
    names = [str(part.get("id")) for message in asking for part in message.parts if part.get("type") == "call"]
    rows = ToolCall.objects.filter(message_id__in=[message.pk for message in asking], call_id__in=names)
    rows = rows.select_related("tool", "agent", "step__run") if names else rows.none()
    calls = {(call.message_id, call.call_id): call for call in rows}
    return [line for message in messages for line in _lines(message, calls)]


def _lines(message: Message, calls: Mapping[tuple[int, str], ToolCall]) -> Iterator[Said]:
    who = message.agent.name if message.role == MessageRole.ASSISTANT else _WHO.get(message.role, str(message.role))
    for part in message.parts:
        found = _line(part, message, calls)
        if found is not None:
            text, kind, named = found
            yield Said(named or who, text, kind, message.created_at, message.wire_id)


_WHO: dict[str, str] = {
    MessageRole.USER: "User",
    MessageRole.SYSTEM: "System",
    MessageRole.TOOL: "Tool",
    MessageRole.SUMMARY: "Summary",
    MessageRole.APPROVAL: "Decision",
}


def _line(
    part: Mapping[str, Any], message: Message, calls: Mapping[tuple[int, str], ToolCall]
) -> tuple[str, str, str] | None:
    kind = part.get("type")
    if kind == "text" and str(part["text"]).strip():
        return shown_text(part["text"]), "said", ""
    if kind == "reasoning" and str(part["text"]).strip():
        return shown_text(part["text"]), "thinks", ""
    if kind == "image":
        return "(an image)", "thinks", ""
    if kind == "call":
        call = calls.get((message.pk, str(part["id"])))
        return (title(call) if call else str(part["name"])), "acts", ""
    if kind == "result":
        good = part.get("status") == "success"
        return shown_text(str(part.get("text") or "")), "returns" if good else "fails", str(part.get("name") or "Tool")
    return None


# --- what people did ---------------------------------------------------------------------------------

_WHAT = {
    DecisionKind.APPROVE: "approved",
    DecisionKind.EDIT: "approved with changes",
    DecisionKind.DENY: "denied",
    DecisionKind.ANSWER: "answered in place of the tool",
    DecisionKind.EXPIRE: "ran out of time",
    DecisionKind.CANCEL: "cancelled",
    DecisionKind.UNSTICK: "closed it to free the agent",
    DecisionKind.RERUN: "said that it had not happened: run it",
    DecisionKind.HAPPENED: "said that it had happened",
    DecisionKind.TELL: "told the agent that nobody knows",
    DecisionKind.EXTEND: "gave it more time",
    DecisionKind.OVERDUE: "is overdue",
    DecisionKind.REVEAL: "looked at what is masked",
    DecisionKind.UNDO: "took the decision back",
}


def trail(call: ToolCall) -> list[Entry]:
    """Decisions and comments, oldest first."""
    decisions = Decision.objects.filter(call=call).order_by("pk")
    said = [Entry(row.created_at, row.actor_name, _did(row), row.reason or "") for row in decisions]
    comments = CallComment.objects.filter(call=call).order_by("pk")
    said += [Entry(row.created_at, row.author_name, "commented", row.text, comment=True) for row in comments]
    return sorted(said, key=lambda entry: entry.at)


def _did(row: Decision) -> str:
    try:
        return _WHAT.get(DecisionKind(row.kind), row.kind)
    except ValueError:
        return row.kind
