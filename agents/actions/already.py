"""The refusal that a decision meets when somebody else was faster: who decided what, and when."""

from __future__ import annotations

from typing import Any

from agents.actions.begin import NO_RETRY
from agents.models import CallState, Decision, DecisionKind, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem

WORDS = {
    DecisionKind.APPROVE: "approved",
    DecisionKind.EDIT: "approved with changes",
    DecisionKind.DENY: "denied",
    DecisionKind.ANSWER: "answered",
    DecisionKind.EXPIRE: "expired",
    DecisionKind.CANCEL: "cancelled",
    DecisionKind.UNSTICK: "closed",
    DecisionKind.RERUN: "settled: run again",
    DecisionKind.HAPPENED: "settled: it had happened",
    DecisionKind.TELL: "settled: the agent was told",
    DecisionKind.UNDO: "taken back",
}
SETTLING = frozenset(WORDS) - {DecisionKind.UNDO}
OUTCOMES = {
    Outcome.DENIED: "denied",
    Outcome.EXPIRED: "expired",
    Outcome.CANCELLED: "cancelled",
    Outcome.ANSWERED: "answered",
    Outcome.REFUSED: "refused",
    Outcome.INTERRUPTED: "interrupted",
}


def last_decision(call: ToolCall) -> Decision | None:
    """The decision that settled ``call``, None when nobody decided (yet)."""
    return Decision.objects.filter(call=call, kind__in=SETTLING).order_by("-id").first()


def already(call: ToolCall, last: Decision | None = None) -> Problem:
    """The 409 for a call that does not wait any more; ``detail`` says who and when in words and in fields."""
    last = last or last_decision(call)
    what = WORDS[DecisionKind(last.kind)] if last else OUTCOMES.get(Outcome(call.outcome), "settled")
    at = last.created_at if last else call.decided_at or call.finished_at
    by = last.actor_name if last else None
    said = f"Tool call '{call.call_id}' was {what}" + (f" by {by}" if by else "")
    return _conflict(call, "ALREADY_DECIDED", said, {
        "decision": last.kind if last else None,
        "decided_by": by,
        "decided_at": at.isoformat() if at else None,
    })  # fmt: skip


def changed(call: ToolCall) -> Problem:
    """The 409 for a call that waits, but not as the caller saw it."""
    said = f"Tool call '{call.call_id}' has changed since it was shown; please look at it again"
    return _conflict(call, "CHANGED", said, {"decision": None, "decided_by": None, "decided_at": None})


def too_late(call: ToolCall) -> Problem:
    """The 409 for a call whose time is over, though the clock has not come by yet: it fails closed."""
    said = f"Tool call '{call.call_id}' expired"
    expired = call.expires_at.isoformat() if call.expires_at else None
    fields = {"decision": "expire", "decided_by": "clock", "decided_at": expired}
    return _conflict(call, "EXPIRED", said, fields)


def _conflict(call: ToolCall, code: str, said: str, fields: dict[str, Any]) -> Problem:
    when = f" at {fields['decided_at']}" if fields["decided_at"] else ""
    detail = {
        "code": code,
        "message": f"CONFLICT: {said}{when}.",
        "id": call.wire_id,
        "tool_call_id": call.call_id,
        "state": CallState(call.state),
        "version": call.version,
        **fields,
    }
    return Problem(409, detail, headers=NO_RETRY)
