"""Write one verdict: the call's row and the decision beside it, inside the lock that the caller holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from agents.actions.already import already, changed, too_late
from agents.actions.requests import Verdict
from agents.events.wake import tell_approvals
from agents.models import CallState, Decision, DecisionKind, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tools import results
from tools.models import ExpireAction

if TYPE_CHECKING:
    from agents.actions.decide import Sender

UNKNOWN_TOLD = (
    "The server was interrupted while this call ran. Its outcome is unknown: it may have taken effect or not."
)
EXPIRED_TOLD = (
    "Error: nobody decided about this tool call in time, so it expired and was not run. Nobody denied it; "
    "do not repeat it unless the user asks for it again."
)
DENIED_BY_HAND = "Do not call it again with these arguments unless the user asks for it."

_KINDS = {
    "approve": (DecisionKind.APPROVE, DecisionKind.RERUN),
    "deny": (DecisionKind.DENY, DecisionKind.TELL),
    "answer": (DecisionKind.ANSWER, DecisionKind.HAPPENED),
    "expire": (DecisionKind.EXPIRE, DecisionKind.EXPIRE),
}


def record(call: ToolCall, verdict: Verdict, sender: Sender) -> Decision:
    """Decide ``call``; raises a :class:`Problem` 409 when it does not wait any more, or its time is over."""
    now = timezone.now()
    check_time(call, verdict, now)
    effect = effect_of(call, verdict, sender, now)
    rows = ToolCall.objects.filter(pk=call.pk, state=call.state, version=call.version)
    if not rows.update(**effect, version=call.version + 1, updated_at=now):
        raise _too_late(call)
    decision = decision_of(call, verdict, sender)
    apply(call, effect)
    decision.save(force_insert=True)
    tell_approvals(call.conversation_id)
    return decision


def check_time(call: ToolCall, verdict: Verdict, now: datetime) -> None:
    """Nobody but the clock decides a call that is denied when its time is over: a :class:`Problem` 409."""
    over = call.expires_at is not None and call.expires_at <= now
    if over and call.expire_action == ExpireAction.DENY and verdict.kind != "expire":
        raise too_late(call)


def apply(call: ToolCall, effect: dict[str, Any]) -> None:
    """Bring the object into the state that its row has now."""
    for name, value in effect.items():
        setattr(call, name, value)
    call.version += 1


def effect_of(call: ToolCall, verdict: Verdict, sender: Sender, now: datetime) -> dict[str, Any]:
    """The columns of a waiting ``call`` that ``verdict`` changes, beside its version."""
    unknown = call.state == CallState.UNKNOWN
    decided = {"decided_at": now, "decided_by": sender.user, "reason": verdict.reason, "overdue": False}
    decided |= {"held_by": None, "held_until": None}
    if verdict.kind == "approve":
        return {**decided, "state": CallState.READY, "edited_arguments": verdict.edited}
    decided |= {"state": CallState.DONE, "finished_at": now}
    if verdict.kind == "answer":
        return {**decided, **_answered(call, verdict)}
    return {**decided, "result_ok": False, **_refused(verdict, sender, unknown=unknown)}


def _refused(verdict: Verdict, sender: Sender, *, unknown: bool) -> dict[str, Any]:
    if verdict.kind == "expire":
        return {"outcome": Outcome.EXPIRED, "result_text": EXPIRED_TOLD}
    if unknown:
        return {"outcome": Outcome.INTERRUPTED, "result_text": UNKNOWN_TOLD}
    text = results.denial_text(verdict.reason)
    # The wire promises clients this very text; who denies by hand says more to the model.
    return {"outcome": Outcome.DENIED, "result_text": text if sender.via == "api" else f"{text}\n{DENIED_BY_HAND}"}


def _answered(call: ToolCall, verdict: Verdict) -> dict[str, Any]:
    limit = call.tool.return_char_limit if call.tool else results.DEFAULT_LIMIT
    return {
        "outcome": Outcome.ANSWERED,
        "result_ok": verdict.ok,
        "result_text": results.truncate(verdict.text, limit),
        "result_content": [dict(part) for part in verdict.content] if verdict.content is not None else None,
        "stdout": list(verdict.stdout),
        "stderr": list(verdict.stderr),
    }


def decision_of(call: ToolCall, verdict: Verdict, sender: Sender) -> Decision:
    """The decision about a ``call`` that still waits, not stored yet."""
    return Decision(
        call=call,
        kind=_KINDS[verdict.kind][call.state == CallState.UNKNOWN] if verdict.edited is None else _edit_of(call),
        actor=sender.user,
        actor_name=str(sender.user or sender.name),
        via=sender.via,
        reason=verdict.reason,
        digest=call.digest,
        before=call.arguments if verdict.edited is not None else None,
        after=verdict.edited,
        sent=dict(verdict.sent),
    )


def note_closing(calls: Iterable[ToolCall], user: Any, reason: str) -> None:
    """Write who closed ``calls``, and why, on rows that were closed without a verdict each: the history shows it."""
    rows = ToolCall.objects.filter(pk__in=[call.pk for call in calls])
    rows.update(decided_at=timezone.now(), decided_by=user, reason=reason)


def _edit_of(call: ToolCall) -> DecisionKind:
    return DecisionKind.RERUN if call.state == CallState.UNKNOWN else DecisionKind.EDIT


def _too_late(call: ToolCall) -> Problem:
    fresh = ToolCall.objects.get(pk=call.pk)
    return changed(fresh) if fresh.waiting else already(fresh)
