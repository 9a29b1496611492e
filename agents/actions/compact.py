"""Compaction when somebody asks for it: the same plan and the same summary as the loop's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.actions.begin import active_run, busy, locked
from agents.executor import pool
from agents.executor.drive import summarize
from agents.loop.compact import order_for, store_summary, window
from agents.loop.course import Course
from agents.loop.orders import Summarize
from agents.loop.prepare import in_context
from agents.models import Conversation, Message, MessageContext, Run
from lettaweb.lib.problems import Problem

NOTHING = "There is nothing to compact: the history holds no whole turn that could be summarized."


def compact(conversation: Conversation, settings: Mapping[str, Any] | None, actor: Any) -> dict[str, Any]:
    """Summarize the oldest turns now. Raises a :class:`Problem` 400 when none may go, 409 while a run works,
    502 when the model gave no summary; the history is unchanged then. Call it outside any transaction.
    """
    with transaction.atomic():
        course = _idle(conversation)
        if settings is not None:
            course.agent.compaction_settings = dict(settings)
        history = in_context(course)
        used = sum(message.tokens for message in history)
        order = order_for(course, history, (window(course), used), trigger="asked")
    if order is None:
        raise Problem(400, NOTHING)
    done = pool.wait_for(summarize(order))
    if not done.text:
        raise Problem(502, f"The conversation could not be summarized: {done.reason}")
    with transaction.atomic():
        course = _idle(conversation)
        _check_unchanged(order)
        before = _counted(conversation)
        store_summary(course, done)
        after = _counted(conversation)
    return {"summary": done.text, "num_messages_before": before, "num_messages_after": after}


def _idle(conversation: Conversation) -> Course:
    """The course of a conversation in which nothing runs, under its lock."""
    locked(conversation)
    running = active_run(conversation)
    if running is not None:
        raise busy(running)
    run = Run(agent=conversation.agent, conversation=conversation, options={})
    return Course(run=run, conversation=conversation, agent=conversation.agent, now=timezone.now())


def _check_unchanged(order: Summarize) -> None:
    left = Message.objects.filter(pk__in=order.message_ids, context__gt=MessageContext.OUT).count()
    if left != len(order.message_ids):
        raise Problem(409, "The conversation changed while it was summarized; please try again.")


def _counted(conversation: Conversation) -> int:
    """How many messages are in context and counted; both conditions, so that the index of what is in context serves."""
    rows = Message.objects.filter(conversation=conversation, context__gt=MessageContext.OUT, context=MessageContext.IN)
    return rows.count()
