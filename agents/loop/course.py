"""The course of a conversation under its lock: one run, its agent, and the facts to be logged.

Every transaction that changes a course begins here and ends with :meth:`Course.log`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import connection
from django.utils import timezone

from agents import outbox
from agents.context import estimate_tokens
from agents.events import Batch, Event, Fence, append_facts
from agents.events.log import close_step
from agents.loop.orders import Streamed
from agents.memory.builtins import search_text
from agents.models import (
    Agent,
    Conversation,
    Message,
    MessageContext,
    MessageRole,
    Run,
    RunStatus,
    Step,
    StepStatus,
    ToolCall,
)
from agents.wire.messages import head_of, messages_of

STATUS_OF = {
    "end_turn": RunStatus.COMPLETED,
    "max_steps": RunStatus.COMPLETED,
    "tool_rule": RunStatus.COMPLETED,
    "requires_approval": RunStatus.COMPLETED,
    "cancelled": RunStatus.CANCELLED,
}


class Lost(Exception):
    """The run is not ours any more: it ended, or somebody else took it over."""


@dataclass(slots=False)
class Course:
    """One run under the lock of its conversation."""

    run: Run
    conversation: Conversation
    agent: Agent
    now: datetime
    events: list[Event] = field(default_factory=list)
    streamed: Streamed | None = None
    last: int | None = None

    @property
    def fence(self) -> Fence:
        return Fence(self.run.pk, self.run.epoch)

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.run.options
        return options

    @property
    def ended(self) -> bool:
        return not self.run.active

    @cached_property
    def turn_id(self) -> int:
        return self.run.turn_id or self.run.pk

    def say(self, *events: Event) -> None:
        self.events.extend(events)

    def show(self, row: Message, *, streamed: frozenset[str] = frozenset()) -> None:
        """Log the wire messages of a stored row; ``streamed`` types were given by deltas already."""
        for message in messages_of(row, _AS_STORED):
            self.events.append(["m", message, message["message_type"] in streamed])

    def log(self) -> Batch | None:
        """Write what was said; call it last in the transaction."""
        if self.streamed is not None:
            rest = [*self.streamed.rest, *self.events]
            written = self.streamed.written
            last = written.last if written else self.last_seq()
            if not rest:
                return None
            return close_step(self.fence, written, Batch(last + 1, rest, self.streamed.head))
        return append_facts(self.fence, self.events, after=self.last) if self.events else None

    def last_seq(self) -> int:
        from agents.events import last_seq

        return self.last if self.last is not None else last_seq(self.run.pk)


def lock(conversation_id: int) -> None:
    """Wait for the course of a conversation; SQLite's write transaction is that lock already."""
    if connection.features.has_select_for_update:
        list(Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).values_list("pk"))


def locked_run(run_id: int) -> Run:
    """The run, its conversation and agent, with the course locked and the row's log fenced."""
    found = Run.objects.filter(pk=run_id).values_list("conversation_id", flat=True).first()
    if found is None:
        raise Lost
    lock(found)
    rows = Run.objects.select_related("conversation", "agent")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(no_key=True, of=("self",))
    run = rows.filter(pk=run_id).first()
    if run is None:
        raise Lost
    return run


def course_of(run: Run) -> Course:
    return Course(run=run, conversation=run.conversation, agent=run.agent, now=timezone.now())


def resume(fence: Fence) -> Course:
    """The course of a run that must still be ours; raises :class:`Lost`."""
    run = locked_run(fence.run_id)
    if run.epoch != fence.epoch or run.status != RunStatus.RUNNING:
        raise Lost
    return course_of(run)


def add_message(
    course: Course,
    role: MessageRole,
    parts: Sequence[Mapping[str, Any]],
    *,
    step: Step | None = None,
    uid: uuid.UUID | None = None,
    **fields: Any,
) -> Message:
    """Store a message of the course's run."""
    kept = [dict(part) for part in parts]
    row = Message(
        uuid=uid or uuid.uuid4(),
        conversation=course.conversation,
        agent=course.agent,
        run=course.run,
        step=step,
        role=role,
        parts=kept,
        created_at=fields.pop("created_at", course.now),
        context=fields.pop("context", MessageContext.IN),
        tokens=estimate_tokens(kept),
        search_text=search_text(role, kept),
        **fields,
    )
    row.save(force_insert=True)
    return row


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
    run.save()
    _note_on_agent(course, reason)
    outbox.run_ended(run)


def _note_on_agent(course: Course, reason: str) -> None:
    milliseconds = (course.run.total_duration_ns or 0) // 1_000_000
    Agent.objects.filter(pk=course.agent.pk).update(
        last_run_completion=course.now, last_run_duration_ms=milliseconds, last_stop_reason=reason
    )
    Conversation.objects.filter(pk=course.conversation.pk).update(last_message_at=course.now)
    if course.agent.message_buffer_autoclear and reason == "end_turn":
        Message.objects.filter(conversation=course.conversation).exclude(role=MessageRole.SYSTEM).update(
            context=MessageContext.OUT
        )


def store_inputs(course: Course) -> None:
    """Store what the user sent along with a decision, once its results are in the history."""
    later = course.options.pop("then", None)
    for given in later or ():
        add_message(course, MessageRole(given["role"]), given["parts"], **given.get("fields", {}))
    if later:
        course.run.save(update_fields=["options", "updated_at"])


def open_calls(conversation_id: int) -> list[ToolCall]:
    """The calls of a conversation whose results are not in its history yet, in emission order."""
    rows = ToolCall.objects.filter(conversation_id=conversation_id, returned=False)
    return list(rows.select_related("step", "message", "tool").order_by("id"))


def return_results(course: Course, calls: Sequence[ToolCall]) -> Message:
    """Store the results of a whole set as one tool message, and show it."""
    step = calls[0].step
    row = add_message(course, MessageRole.TOOL, [result_part(call) for call in calls], step=step, name=calls[0].name)
    ToolCall.objects.filter(pk__in=[call.pk for call in calls]).update(returned=True)
    Step.objects.filter(pk=step.pk, finished_at=None).update(finished_at=course.now)
    course.show(row)
    store_inputs(course)
    return row


def result_part(call: ToolCall) -> dict[str, Any]:
    part = {
        "type": "result",
        "id": call.call_id,
        "name": call.name,
        "status": "success" if call.result_ok else "error",
        "text": call.result_text,
        "stdout": call.stdout,
        "stderr": call.stderr,
        "gated": call.gated,
    }
    if call.result_content is not None:
        part["content"] = call.result_content
    return part


def fail_open_step(course: Course, status: StepStatus, error: Mapping[str, Any] | None = None) -> None:
    """Close the step that waits for its answer, if there is one."""
    Step.objects.filter(run=course.run, status=StepStatus.PENDING).update(
        status=status,
        finished_at=course.now,
        error_type=error["type"] if error else None,
        error_data=dict(error) if error else None,
        stop_reason=course.run.stop_reason,
    )


from agents.wire.messages import View as _View  # noqa: E402

_AS_STORED = _View(use_assistant_message=False)

__all__ = ["Course", "Lost", "course_of", "end", "head_of", "lock", "locked_run", "resume"]
