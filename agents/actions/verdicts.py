"""Write one verdict: the call's row and the decision beside it, inside the lock that the caller holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from agents.actions.requests import Verdict
from agents.models import CallState, Decision, DecisionKind, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tools import results

if TYPE_CHECKING:
    from agents.actions.decide import Sender

UNKNOWN_TOLD = (
    "The server was interrupted while this call ran. Its outcome is unknown: it may have taken effect or not."
)


def record(call: ToolCall, verdict: Verdict, sender: Sender) -> Decision:
    """Decide ``call``; raises a :class:`Problem` 409 when it does not wait any more."""
    unknown = call.state == CallState.UNKNOWN
    fields = _effect(call, verdict, unknown=unknown)
    now = timezone.now()
    changed = ToolCall.objects.filter(pk=call.pk, state=call.state, version=call.version).update(
        **fields, version=call.version + 1, decided_at=now, decided_by=sender.user, reason=verdict.reason, updated_at=now
    )
    if not changed:
        raise Problem(409, f"Tool call '{call.call_id}' was decided by somebody else.", headers={"x-should-retry": "false"})
    for name, value in fields.items():
        setattr(call, name, value)
    call.version += 1
    return Decision.objects.create(
        call=call,
        kind=_kind(verdict, unknown=unknown),
        actor=sender.user,
        actor_name=str(sender.user or "system"),
        via=sender.via,
        reason=verdict.reason,
        digest=call.digest,
        before=call.arguments if verdict.edited is not None else None,
        after=verdict.edited,
        sent=dict(verdict.sent),
    )


def _kind(verdict: Verdict, *, unknown: bool) -> DecisionKind:
    if verdict.kind == "approve":
        return DecisionKind.RERUN if unknown else DecisionKind.EDIT if verdict.edited is not None else DecisionKind.APPROVE
    if verdict.kind == "deny":
        return DecisionKind.TELL if unknown else DecisionKind.DENY
    return DecisionKind.HAPPENED if unknown else DecisionKind.ANSWER


def _effect(call: ToolCall, verdict: Verdict, *, unknown: bool) -> dict[str, Any]:
    if verdict.kind == "approve":
        edited = {"edited_arguments": verdict.edited} if verdict.edited is not None else {}
        return {"state": CallState.READY, **edited}
    done: dict[str, Any] = {"state": CallState.DONE, "finished_at": timezone.now()}
    if verdict.kind == "deny":
        text = UNKNOWN_TOLD if unknown else results.denial_text(verdict.reason)
        outcome = Outcome.INTERRUPTED if unknown else Outcome.DENIED
        return {**done, "outcome": outcome, "result_ok": False, "result_text": text}
    limit = call.tool.return_char_limit if call.tool else 50_000
    return {
        **done,
        "outcome": Outcome.ANSWERED,
        "result_ok": verdict.ok,
        "result_text": results.truncate(verdict.text, limit),
        "result_content": [dict(part) for part in verdict.content] if verdict.content is not None else None,
        "stdout": list(verdict.stdout),
        "stderr": list(verdict.stderr),
    }
