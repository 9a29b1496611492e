"""How a run ends: its terminal events, its status, its open step and calls, and what must leave afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import outbox
from agents.events.wake import tell_approvals, tell_course
from agents.loop.course import Course
from agents.loop.returns import open_calls, return_results, store_inputs
from agents.models import (
    CallState,
    Driver,
    Message,
    MessageContext,
    MessageRole,
    Run,
    RunStatus,
    Step,
    StepStatus,
)
from agents.models.toolcall import Outcome

STATUS_OF = {
    "end_turn": RunStatus.COMPLETED,
    "max_steps": RunStatus.COMPLETED,
    "tool_rule": RunStatus.COMPLETED,
    "requires_approval": RunStatus.COMPLETED,
    "cancelled": RunStatus.CANCELLED,
}


def usage_of(run: Run) -> dict[str, Any]:
    """The usage statistics of a run as the wire writes them."""
    return {
        "message_type": "usage_statistics",
        "completion_tokens": run.output_tokens,
        "prompt_tokens": run.input_tokens,
        "total_tokens": run.input_tokens + run.output_tokens,
        "step_count": run.steps_count,
        "run_ids": [run.wire_id],
        "cached_input_tokens": run.cached_tokens,
        "cache_write_tokens": run.cache_write_tokens,
        "reasoning_tokens": run.reasoning_tokens,
        "context_tokens": run.context_tokens,
    }


def end(course: Course, reason: str, error: Mapping[str, Any] | None = None) -> None:
    """End the run: its terminal events, its status, and what must leave afterwards.

    ``error`` (type, message, detail) comes with a failure.
    """
    run = course.run
    store_inputs(course)
    run.status = STATUS_OF.get(reason, RunStatus.FAILED)
    run.stop_reason = reason
    run.completed_at = course.now
    run.error = dict(error) if error else None
    run.total_duration_ns = int((course.now - run.created_at).total_seconds() * 1e9)
    run.owner = None
    course.say(["stop", reason])
    if error:
        course.say(["error", dict(error)])
    course.say(["usage", usage_of(run)])
    course.touch()
    tell_course(run.agent_id)
    if run.driver == Driver.BATCH and run.status in (RunStatus.FAILED, RunStatus.CANCELLED):
        _drop_unanswered(course)
    _note_on_agent(course, reason)
    outbox.run_ended(run)


def _drop_unanswered(course: Course) -> None:
    """What a batch said to an agent and got no answer to: the agent's context is as it was before."""
    course.write()
    mine = Message.objects.filter(run=course.run)
    answered = mine.exclude(context=MessageContext.ATTACHED).order_by("-id").values_list("id", flat=True).first()
    mine.filter(context=MessageContext.ATTACHED, id__gt=answered or 0).update(context=MessageContext.OUT)


def _note_on_agent(course: Course, reason: str) -> None:
    agent, conversation = course.agent, course.conversation
    agent.last_run_completion, agent.last_stop_reason = course.now, reason
    agent.last_run_duration_ms = (course.run.total_duration_ns or 0) // 1_000_000
    conversation.last_message_at = course.now
    course.later.update(agent, "last_run_completion", "last_run_duration_ms", "last_stop_reason")
    course.later.update(conversation, "last_message_at")
    if course.agent.message_buffer_autoclear and reason == "end_turn":
        course.write()
        Message.objects.filter(conversation=course.conversation).exclude(role=MessageRole.SYSTEM).update(
            context=MessageContext.OUT
        )


def fail_open_step(course: Course, status: StepStatus, error: Mapping[str, Any] | None = None) -> None:
    """Close the step that waits for its answer, if there is one."""
    Step.objects.filter(run=course.run, status=StepStatus.PENDING).update(
        status=status,
        finished_at=course.now,
        error_type=error["type"] if error else None,
        error_data=dict(error) if error else None,
        stop_reason=course.run.stop_reason,
    )


def close_calls(course: Course, text: str, *, outcome: Outcome = Outcome.INTERRUPTED) -> None:
    """Every open call gets a result, and the results enter the history: the next request is valid."""
    calls = open_calls(course.conversation.pk)
    if any(call.waiting for call in calls):
        tell_approvals(course.conversation.pk)
    for call in calls:
        if call.state != CallState.DONE:
            call.state, call.outcome, call.finished_at = CallState.DONE, outcome, course.now
            call.result_ok, call.result_text = False, text
            call.version += 1
            call.save()
    for step_id in dict.fromkeys(call.step_id for call in calls):
        return_results(course, [call for call in calls if call.step_id == step_id])
