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
from django.db.models import QuerySet
from django.utils import timezone

from agents.context import HistoryMessage, estimate_tokens
from agents.events import Batch, Event, Fence, last_seq
from agents.events.log import append_many, merged
from agents.loop.orders import Streamed
from agents.memory.blocks import BlockView
from agents.memory.builtins import search_text
from agents.models import Agent, Conversation, Driver, Message, MessageContext, MessageRole, Run, RunStatus, Step
from agents.wire.messages import View, messages_of
from lettaweb.lib.many import Later, write
from lettaweb.lib.statements import Prepared, insert
from tools.models import Tool

CHANGING = (
    "status", "stop_reason", "owner", "epoch", "options", "metadata", "completed_at", "ttft_ns", "total_duration_ns",
    "error", "steps_count", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
    "reasoning_tokens", "context_tokens", "updated_at",
)  # fmt: skip
"""What the loop changes of a run's row."""
AS_STORED = View(use_assistant_message=False)
EVERYONE, NOT_TOKENS, ONLY_TOKENS = 0, 1, 2  # who is shown a whole message in a stream


class Lost(Exception):
    """The run is not ours any more: it ended, or somebody else took it over."""


@dataclass(slots=True)
class Known:
    """What was read of a course ahead, together with others; None: not read, or not true any more.

    ``open_calls``: whether there are any. ``step``: the one that waits for its answer.
    """

    history: list[HistoryMessage] | None = None
    tools: list[Tool] | None = None
    blocks: tuple[BlockView, ...] | None = None
    open_calls: bool | None = None
    step: Step | None = None


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
    touched: bool = False
    again: bool = False  # the same transaction, or another owner's, may have counted before
    known: Known = field(default_factory=Known)
    later: Later = field(default_factory=Later)
    first_step: Step | None = None  # opened in this transaction: what was said to the run so far belongs to it

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

    def show(self, row: Message) -> None:
        """Log the wire messages of a stored row."""
        for message in messages_of(row, AS_STORED):
            self.events.append(["m", message, EVERYONE])

    def touch(self) -> None:
        """The run changed: its row is written once, by :meth:`log`."""
        self.touched = True

    def log(self) -> Batch | None:
        """Write the run's row and what was said; call it last in the transaction."""
        return log_many([self])[0]

    def write(self) -> None:
        """Write now what was put off: somebody is about to read it, or to write what must come after it."""
        _write([self])

    def unsaid(self) -> Batch | None:
        """What the log does not hold yet; None when there is nothing."""
        streamed = self.streamed or Streamed()
        events = [*streamed.rest, *self.events]
        if not events:
            return None
        last = self.last_seq() if streamed.last is None else streamed.last
        return Batch(last + 1, events, streamed.head)

    def last_seq(self) -> int:
        if self.last is None:
            self.last = last_seq(self.run.pk)
        return self.last


def log_many(courses: Sequence[Course]) -> list[Batch | None]:
    """Write the runs' rows, what was put off and what was said in each course; last in the transaction.

    Returns what the log of each gained.
    """
    for course in courses:
        if course.touched:
            course.later.update(course.run, *CHANGING)
    _write(courses)
    gained = [course.unsaid() for course in courses]
    append_many(
        [
            (course.fence, segment)
            for course, batch in zip(courses, gained, strict=True)
            if batch is not None
            for segment in merged(course.fence, course.streamed.written if course.streamed else None, batch)
        ]
    )
    return gained


def _write(courses: Sequence[Course]) -> None:
    write(course.later for course in courses)
    first = [(course.first_step.pk, course.run.pk) for course in courses if course.first_step is not None]
    if first:
        with connection.cursor() as cursor:
            cursor.executemany(_OF_FIRST_STEP, first)
    for course in courses:
        course.first_step = None


_OF_FIRST_STEP = "UPDATE agents_message SET step_id = %s WHERE run_id = %s AND step_id IS NULL"


def _locked(run_id: int) -> QuerySet[Run]:
    rows = Run.objects.filter(pk=run_id)
    return rows.select_for_update(no_key=True) if connection.features.has_select_for_update else rows


_runs = Prepared(_locked)
_conversations = Prepared(lambda key: Conversation.objects.filter(pk=key))
_agents = Prepared(lambda key: Agent.objects.filter(pk=key).order_by())


def lock(conversation_id: int) -> None:
    """Wait for the course of a conversation; SQLite's write transaction is that lock already."""
    if connection.features.has_select_for_update:
        list(Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).values_list("pk"))


def locked_run(run_id: int) -> Run:
    """The run, its conversation and agent, with the course locked and the row's log fenced."""
    if connection.features.has_select_for_update:
        found = Run.objects.filter(pk=run_id).values_list("conversation_id", flat=True).first()
        if found is None:
            raise Lost
        lock(found)
    runs = _runs(run_id)
    if not runs:
        raise Lost
    run = runs[0]
    (run.conversation,), (run.agent,) = _conversations(run.conversation_id), _agents(run.agent_id)
    run.conversation.agent = run.agent
    return run


def course_of(run: Run) -> Course:
    return Course(run=run, conversation=run.conversation, agent=run.agent, now=timezone.now())


def resume(fence: Fence, *, last: int | None = None) -> Course:
    """The course of a run that must still be ours; raises :class:`Lost`.

    ``last`` is the number of the run's last event where its owner, who alone writes the log, knows it; it does not
    after a takeover, and after a commit of which it heard nothing.
    """
    run = locked_run(fence.run_id)
    if run.epoch != fence.epoch or run.status != RunStatus.RUNNING:
        raise Lost
    course = course_of(run)
    course.last, course.again = last, last is None
    return course


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
    course.write()
    row = message_row(course, role, parts, step=step, uid=uid, **fields)
    insert(row)
    course.known.history = None
    return row


def message_row(
    course: Course,
    role: MessageRole,
    parts: Sequence[Mapping[str, Any]],
    *,
    step: Step | None = None,
    uid: uuid.UUID | None = None,
    **fields: Any,
) -> Message:
    """The row of a message of the course's run, not stored yet.

    What a batch says to an agent belongs to its item: the model sees it beside the answer that follows.
    """
    kept = [dict(part) for part in parts]
    asks = role in (MessageRole.USER, MessageRole.SYSTEM)
    usual = MessageContext.ATTACHED if asks and course.run.driver == Driver.BATCH else MessageContext.IN
    return Message(
        uuid=uid or uuid.uuid4(),
        conversation=course.conversation,
        agent=course.agent,
        run=course.run if course.run.pk else None,
        step=step,
        role=role,
        parts=kept,
        created_at=fields.pop("created_at", course.now),
        context=fields.pop("context", usual),
        batch_item=course.options.get("batch_item"),
        tokens=estimate_tokens(kept),
        search_text=search_text(role, kept),
        **fields,
    )
