"""One decision about one call, and taking it back while the set still waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.actions.already import already, changed, last_decision
from agents.actions.begin import waiting_calls
from agents.actions.decide import Sender
from agents.actions.desk.edits import checked
from agents.actions.desk.find import find, locked
from agents.actions.desk.together import Raced, store
from agents.actions.desk.words import addressed
from agents.actions.requests import Verdict
from agents.actions.verdicts import apply, check_time
from agents.events.wake import tell_approvals
from agents.models import CallState, Decision, DecisionKind, Message, MessageRole, Run, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem

UNDONE: dict[str, Any] = {
    "outcome": Outcome.NONE, "edited_arguments": None, "decided_at": None, "decided_by": None, "reason": None,
    "finished_at": None, "result_ok": None, "result_text": "", "result_content": None, "stdout": [], "stderr": [],
}  # fmt: skip
BY_PEOPLE = (DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.DENY, DecisionKind.ANSWER)
OF_UNKNOWN = (DecisionKind.RERUN, DecisionKind.TELL, DecisionKind.HAPPENED)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision came to. ``run`` goes on with the set, None while others of it still wait.

    ``repeated``: the same person had said the same before; nothing was recorded.
    """

    call: ToolCall
    run: Run | None
    repeated: bool = False


def decide(call_uuid: UUID, verdict: Verdict, *, version: int, digest: str, user: Any, via: str = "desk") -> Decided:
    """Decide one call; the decision that completes its set creates the run that goes on.

    Raises a :class:`Problem`: 404 unknown; 409 decided by somebody else or changed since it was shown (who
    and when in ``detail``); 400 a yes to a client's call; 422 edited arguments that the tool does not take.
    """
    call = find(call_uuid)
    if not call.waiting:
        return _again(call, verdict, user)
    if (call.version, call.digest) != (version, digest):
        raise changed(call)
    wanted = addressed(checked(verdict, call), call)
    check_time(call, wanted, timezone.now())
    try:
        stored = store([(call, wanted)], Sender(user, via=via))
    except Raced:
        return _beaten(find(call_uuid), verdict, user)
    return Decided(call, stored.runs.get(call.conversation_id))


def _beaten(call: ToolCall, verdict: Verdict, user: Any) -> Decided:
    """Somebody was faster between our look and our write; perhaps the same person."""
    if call.waiting:
        raise changed(call)
    return _again(call, verdict, user)


def _again(call: ToolCall, verdict: Verdict, user: Any) -> Decided:
    """The answer to a repetition by the same person; the 409 to everybody else."""
    if not said_before(call, verdict, user):
        raise already(call)
    return Decided(call, _went_on(call), repeated=True)


def said_before(call: ToolCall, verdict: Verdict, user: Any) -> bool:
    """Whether the decision that settled ``call`` is this very one, by the same person."""
    last = last_decision(call)
    if last is None or last.actor_id is None or last.actor_id != user.pk:
        return False
    try:
        same = addressed(checked(verdict, call), call)
    except Problem:
        return False
    return (last.sent, last.after, last.reason) == (same.sent, same.edited, same.reason)


def _went_on(call: ToolCall) -> Run | None:
    """The run that the decisions about the set of ``call`` created."""
    rows = Message.objects.filter(conversation_id=call.conversation_id, role=MessageRole.APPROVAL)
    after = rows.filter(pk__gt=call.message_id, run__turn_id=call.turn_id).select_related("run").order_by("pk").first()
    return after.run if after else None


def undo(call_uuid: UUID, *, version: int, user: Any, via: str = "desk") -> ToolCall:
    """Take a person's decision back while another call of the set still waits: the call waits again.

    Raises a :class:`Problem` 404 or 409 (it waits, it was changed, its set went on, or no person decided it).
    """
    with transaction.atomic():
        call = locked(call_uuid)
        last = last_decision(call)
        _check_undo(call, last, version)
        assert last is not None
        state = CallState.UNKNOWN if last.kind in OF_UNKNOWN else CallState.PENDING
        effect = {**UNDONE, "state": state}
        now = timezone.now()
        ToolCall.objects.filter(pk=call.pk).update(**effect, version=call.version + 1, updated_at=now)
        apply(call, effect)
        Decision.objects.create(
            call=call, kind=DecisionKind.UNDO, actor=user, actor_name=str(user), via=via, digest=call.digest
        )
        tell_approvals(call.conversation_id)
        return call


def _check_undo(call: ToolCall, last: Decision | None, version: int) -> None:
    if call.waiting:
        raise Problem(409, f"Tool call '{call.call_id}' waits: there is nothing to take back.")
    if last is None or last.kind not in (*BY_PEOPLE, *OF_UNKNOWN):
        raise already(call, last)
    if call.version != version:
        raise changed(call)
    if not waiting_calls(call.conversation) or call.returned:
        raise Problem(409, f"Tool call '{call.call_id}' has gone on: its decision cannot be taken back.")
