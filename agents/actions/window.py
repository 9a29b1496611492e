"""Which messages of an agent's own conversation the model sees: chosen by id, or begun anew."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from agents.actions.boot import first_messages, store
from agents.actions.cancel import cancel_agent
from agents.loop.course import lock
from agents.models import Agent, Conversation, Message, MessageContext, MessageRole
from agents.policies.rows import default_conversation
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.policies import Actor

AT_ONCE = 200  # rows of one write


def set_message_ids(agent: Agent, wires: Sequence[str]) -> None:
    """Make these messages the ones in context, beside the system message, in the caller's transaction.

    Raises a :class:`Problem` 400 for ids that are no messages of the agent's default conversation.
    """
    conversation = default_conversation(agent)
    lock(conversation.pk)
    wanted = [ids.parse("message", wire) for wire in wires]
    rows = Message.objects.filter(conversation=conversation)
    known = set(rows.filter(uuid__in=wanted).values_list("uuid", flat=True))
    if missing := [wire for wire, uuid in zip(wires, wanted, strict=True) if uuid not in known]:
        raise Problem(400, f"Messages not found by id: {', '.join(missing[:20])}")
    body = rows.exclude(pk=_prompt(conversation))
    body.filter(context__gt=MessageContext.OUT).exclude(uuid__in=wanted).update(context=MessageContext.OUT)
    body.filter(uuid__in=wanted, context=MessageContext.OUT).update(context=MessageContext.IN)


def reset_messages(agent: Agent, actor: Actor, *, with_first: bool) -> None:
    """Delete all messages of the agent's default conversation but its system message.

    What runs or waits is cancelled first. ``with_first``: its kind's first messages come back.
    """
    cancel_agent(agent, actor)
    conversation = default_conversation(agent)
    drop_messages(conversation)
    if with_first:
        with transaction.atomic():
            lock(conversation.pk)
            now = timezone.now()
            store(conversation, first_messages(agent, now)[1:], now=now)


def drop_messages(conversation: Conversation) -> None:
    """Delete what a conversation holds now but its prompt, in transactions that other writers do not notice."""
    rows = Message.objects.filter(conversation=conversation)
    last = rows.order_by("-id").values_list("pk", flat=True).first() or 0
    rows = rows.filter(pk__lte=last).exclude(pk=_prompt(conversation))
    while keys := list(rows.order_by("-id").values_list("pk", flat=True)[:AT_ONCE]):
        Message.objects.filter(pk__in=keys).delete()


def _prompt(conversation: Conversation) -> int:
    """The primary key of the system message that a conversation begins with; 0 when it has none."""
    rows = Message.objects.filter(conversation=conversation, role=MessageRole.SYSTEM)
    return rows.order_by("id").values_list("pk", flat=True).first() or 0
