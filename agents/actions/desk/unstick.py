"""Free a conversation whose calls nobody will decide any more: an audited denial that asks no model."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.actions.begin import active_run, busy, locked, waiting_calls
from agents.actions.verdicts import note_closing
from agents.events.wake import tell_approvals
from agents.loop.course import course_of
from agents.loop.ending import close_calls
from agents.loop.returns import open_calls
from agents.models import CallState, Conversation, Decision, DecisionKind, Run, ToolCall
from agents.models.toolcall import Outcome
from agents.policies.rights import DECIDE, can
from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean_text
from tools import results

REASON = "An operator closed this request."


def unstick(conversation: Conversation, user: Any, reason: str | None = None, *, via: str = "desk") -> list[ToolCall]:
    """Deny all that waits in a conversation and go on with nothing: the next message is accepted.

    The calls that were closed, none when nothing waited. Raises a :class:`Problem` 403 without the right to
    decide, 409 while a run is active there.
    """
    if not can(user, DECIDE):
        raise Problem(403, "You may not decide tool calls")
    why = clean_text(reason or "").strip() or REASON
    with transaction.atomic():
        locked(conversation)
        if not waiting_calls(conversation):
            return []
        running = active_run(conversation)
        if running is not None:
            raise busy(running)
        calls = [call for call in open_calls(conversation.pk) if call.state != CallState.DONE]
        Decision.objects.bulk_create(_audited(call, user, why, via) for call in calls)
        run = Run.objects.select_related("conversation", "agent").get(pk=calls[0].step.run_id)
        close_calls(course_of(run), results.denial_text(why), outcome=Outcome.DENIED)
        note_closing(calls, user, why)
        tell_approvals(conversation.pk)
    return calls


def _audited(call: ToolCall, user: Any, reason: str, via: str) -> Decision:
    return Decision(
        call=call, kind=DecisionKind.UNSTICK, actor=user, actor_name=str(user), via=via, reason=reason,
        digest=call.digest,
    )  # fmt: skip
