"""Create runs: the one place where a request becomes a row that an executor drives."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from agents.events import Fence
from agents.events.wake import announce, announce_here, tell_course
from agents.loop import Advanced
from agents.loop.course import Course, lock
from agents.models import Conversation, Driver, Run, RunStatus, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from agents.wire.messages import request_for
from lettaweb.lib.problems import Problem
from lettaweb.lib.statements import Prepared, insert

BUSY = (
    "CONFLICT: Cannot send a new message: Another request is currently being processed for this conversation. "
    "Please wait for it to finish, or cancel it, before sending another one."
)
PENDING = (
    "CONFLICT: Cannot send a new message: The agent is waiting for approval on a tool call. "
    "Please approve or deny the pending request before continuing."
)
NO_RETRY = {"x-should-retry": "false"}

on_batch_run: list[Callable[[], None]] = []
"""Who drives batch runs hears of a new one here, inside the transaction that makes it."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run that a request began or found.

    ``mine``: this process owns it and must drive it; ``first``: what comes first then, where that is known.
    """

    run: Run
    mine: bool
    fresh: bool = True
    first: Advanced | None = None

    @property
    def fence(self) -> Fence:
        return Fence(self.run.pk, self.run.epoch)


def active_run(conversation: Conversation) -> Run | None:
    found = _active(conversation.pk)
    return found[0] if found else None


_active = Prepared(lambda key: Run.objects.filter(conversation=key, status__in=ACTIVE).order_by())


def waiting_calls(conversation: Conversation) -> list[ToolCall]:
    """The calls that people must decide, in emission order."""
    rows = ToolCall.objects.filter(conversation=conversation, returned=False, state__in=WAITING)
    if not rows.exists():
        return []
    return list(rows.select_related("message", "step__run", "tool").order_by("id"))


def busy(run: Run) -> Problem:
    extra: dict[str, Any] = {"run_id": run.wire_id}
    if run.driver == Driver.BATCH:
        extra["batch_id"] = (run.metadata or {}).get("batch_id")
    return Problem(409, BUSY, extra=extra)


def pending(calls: list[ToolCall]) -> Problem:
    detail = {
        "code": "PENDING_APPROVAL",
        "message": PENDING,
        "pending_request_id": calls[0].message.wire_id,
        "tool_call_ids": [call.call_id for call in calls],
    }
    return Problem(409, detail, headers=NO_RETRY)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new run is made of. ``owner``: the process that has a slot for it, None: anybody's turn."""

    options: Mapping[str, Any]
    background: bool = False
    callback_url: str | None = None
    owner: uuid.UUID | None = None
    actor: Any = None
    driver: str = Driver.LIVE
    turn_id: int | None = None
    metadata: Mapping[str, Any] | None = None


def create_run(conversation: Conversation, wanted: Wanted) -> Run:
    """A new run under the lock that the caller holds."""
    run = run_row(conversation, wanted, timezone.now())
    insert(run)
    tell_run(run)
    return run


def run_row(conversation: Conversation, wanted: Wanted, now: datetime) -> Run:
    """The row of a new run, not stored yet; whoever stores it calls :func:`tell_run` afterwards."""
    owned = wanted.owner is not None and wanted.driver == Driver.LIVE
    return Run(
        agent=conversation.agent,
        conversation=conversation,
        turn_id=wanted.turn_id,
        driver=wanted.driver,
        owner_id=wanted.owner if owned else None,
        epoch=1 if owned else 0,
        status=RunStatus.RUNNING if owned else RunStatus.CREATED,
        started_at=now if owned else None,
        background=wanted.background,
        options=dict(wanted.options),
        callback_url=wanted.callback_url,
        metadata=dict(wanted.metadata) if wanted.metadata else None,
        created_by=wanted.actor,
    )


def tell_run(run: Run) -> None:
    """Tell readers of the agent of a new run, and executors of one without an owner, when the transaction commits."""
    tell_course(run.agent_id)
    if run.driver == Driver.BATCH:
        for hear in on_batch_run:
            hear()
    if run.owner_id is None:
        announce("runs", run.pk)
        announce_here("runs", run.pk)


def locked(conversation: Conversation) -> None:
    lock(conversation.pk)


def course_of_new(run: Run) -> Course:
    return Course(run=run, conversation=run.conversation, agent=run.agent, now=timezone.now(), last=0)


def request_message(calls: list[ToolCall]) -> dict[str, Any]:
    """The approval request that stands for waiting calls."""
    return request_for(calls[0].message, calls)
