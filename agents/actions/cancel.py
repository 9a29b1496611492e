"""Cancel, by anybody: one transaction closes what is open and keeps what was said.

The owner of a run need not co-operate: the epoch has moved on, and its next write finds out.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.actions.begin import active_run, locked, waiting_calls
from agents.actions.verdicts import note_closing
from agents.events.wake import announce, announce_here
from agents.loop.course import Course, add_message, course_of, locked_run
from agents.loop.ending import close_calls, end, fail_open_step
from agents.loop.prepare import shown_of
from agents.models import Agent, Conversation, Decision, DecisionKind, MessageRole, Run, RunStatus, Step, StepStatus
from agents.models.toolcall import Outcome
from tools import results

REASON = "The run was cancelled."


def cancel_conversation(
    conversation: Conversation, actor: Any, *, reason: str = REASON, via: str = "api"
) -> Run | None:
    """Cancel what runs or waits in a conversation; the run that was cancelled, None when there was nothing."""
    with transaction.atomic():
        locked(conversation)
        run = active_run(conversation)
        if run is not None:
            return _cancel_active(run)
        waiting = waiting_calls(conversation)
        if not waiting:
            return None
        return _deny_waiting(conversation, actor, reason=reason, via=via)


def cancel_agent(agent: Agent, actor: Any) -> list[Run]:
    """Cancel everything of an agent."""
    conversations = Conversation.objects.filter(agent=agent).select_related("agent")
    return [run for one in conversations if (run := cancel_conversation(one, actor)) is not None]


def _cancel_active(run: Run) -> Run:
    # Its row is locked first: deltas that are on their way are seen here, or find the new epoch.
    run = locked_run(run.pk)
    course = course_of(run)
    cancel_course(course)
    course.log()
    announce("runs", run.pk)
    announce_here("cancelled", run.pk)
    return run


def cancel_course(course: Course) -> None:
    """End the course's run as cancelled, inside the transaction that locked it; whoever drives it finds out."""
    course.run.epoch += 1
    course.run.save(update_fields=["epoch", "updated_at"])
    _keep_what_was_said(course)
    close_calls(course, results.denial_text(REASON), outcome=Outcome.CANCELLED)
    course.run.stop_reason = "cancelled"
    fail_open_step(course, StepStatus.CANCELLED)
    end(course, "cancelled")


def _keep_what_was_said(course: Course) -> None:
    """The text that readers saw of the open answer stays, marked cancelled; reasoning and calls do not."""
    step = Step.objects.filter(run=course.run, status=StepStatus.PENDING).first()
    if step is None:
        return
    text = "".join(text for kind, text in shown_of(course.run, step) if kind == "a")
    if text.strip():
        parts = [{"type": "text", "text": text}]
        add_message(
            course, MessageRole.ASSISTANT, parts, step=step, uid=step.message_uuid, model=step.model, mark="cancelled",
            superseded=step.superseded,
        )  # fmt: skip


def _deny_waiting(conversation: Conversation, actor: Any, *, reason: str, via: str) -> Run:
    calls = waiting_calls(conversation)
    run = Run.objects.select_related("conversation", "agent").get(pk=calls[0].step.run_id)
    asked = (
        Run.objects.filter(conversation=conversation).order_by("-pk").select_related("conversation", "agent").first()
    )
    run = asked or run
    for call in calls:
        Decision.objects.create(
            call=call, kind=DecisionKind.CANCEL, actor=actor, actor_name=str(actor or "system"), via=via,
            reason=reason, digest=call.digest,
        )  # fmt: skip
    course = course_of(run)
    close_calls(course, results.denial_text(reason), outcome=Outcome.CANCELLED)
    note_closing(calls, actor, reason)
    run.status, run.stop_reason = RunStatus.CANCELLED, "cancelled"
    run.save(update_fields=["status", "stop_reason", "updated_at"])
    announce("runs", run.pk)
    announce_here("runs", run.pk)
    return run
