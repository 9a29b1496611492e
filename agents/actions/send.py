"""A request for an agent: messages begin a run, an approval goes on where the agent waits."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction

from agents import loop
from agents.actions.begin import (
    Started,
    Wanted,
    active_run,
    busy,
    course_of_new,
    create_run,
    locked,
    pending,
    waiting_calls,
)
from agents.actions.decide import Sender, answer
from agents.actions.llm import from_handle
from agents.actions.requests import Input, MessageRequest
from agents.context import estimate_tokens
from agents.loop.compact import window
from agents.loop.course import Course, add_message
from agents.loop.ending import close_calls
from agents.loop.returns import any_open
from agents.models import Conversation, Message, MessageRole, Run
from lettaweb.lib.problems import Problem


def send(conversation: Conversation, request: MessageRequest, *, actor: Any, owner: uuid.UUID | None = None) -> Started:
    """Begin (or find) the run that answers ``request``. Raises a :class:`Problem` and stores nothing then."""
    if request.options.get("override_model"):
        from_handle(request.options["override_model"])
    sender = Sender(actor, owner)
    with transaction.atomic():
        locked(conversation)
        if request.approval is not None:
            return answer(conversation, request, sender)
        return _begin(conversation, request, sender)


def _begin(conversation: Conversation, request: MessageRequest, sender: Sender) -> Started:
    running = active_run(conversation)
    if running is not None:
        if request.background and _same_request(running, request):
            return Started(running, mine=False, fresh=False)
        raise busy(running)
    left_open = any_open(conversation.pk)
    waiting = waiting_calls(conversation) if left_open else []
    if waiting:
        raise pending(waiting)
    wanted = Wanted(
        options=request.options,
        background=request.background,
        callback_url=request.callback_url,
        owner=sender.owner,
        actor=sender.user,
    )
    run = create_run(conversation, wanted)
    course = course_of_new(run)
    if left_open:
        # Their results belong to the history, not to what this run says: its log stays empty.
        close_calls(course, "This call was never finished; its outcome is unknown.")
        course.events.clear()
    course.known.open_calls = False
    for given in request.inputs:
        store_input(course, given)
    mine = run.owner_id is not None
    return Started(run, mine=mine, first=loop.begin(course) if mine else None)


def store_input(course: Course, given: Input) -> Message:
    """Store a message from the outside; a :class:`Problem` 413 when no window can hold it."""
    if estimate_tokens([dict(part) for part in given.parts]) > window(course):
        raise Problem(413, "The message is larger than the context window of the agent's model.")
    return add_message(course, MessageRole(given.role), given.parts, **given.fields)


def _same_request(running: Run, request: MessageRequest) -> bool:
    """Whether a repeated background request is the one that runs already: the same otids, all of them."""
    otids = list(
        Message.objects.filter(run=running, role=MessageRole.USER).order_by("id").values_list("otid", flat=True)
    )
    return bool(otids) and otids == request.otids
