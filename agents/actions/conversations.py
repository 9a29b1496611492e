"""Threads of messages of an agent: begun, changed, forked, deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.actions.boot import prompt_of
from agents.actions.cancel import cancel_conversation
from agents.actions.llm import from_handle
from agents.context import estimate_tokens
from agents.loop.course import lock
from agents.models import Agent, Conversation, Message, MessageContext, MessageRole, Run, Step, ToolCall
from agents.models.run import ACTIVE
from lettaweb.lib.problems import Problem

FIELDS = ("summary", "description", "model", "model_settings", "context_window_limit", "last_message_at")
MOST_COPIED = 1000  # messages that a fork takes over
AT_ONCE = 200  # rows of one write: no transaction holds the writer long
TRIES = 5


def create_conversation(owner: Agent, given: Mapping[str, Any]) -> Conversation:
    """A new conversation of ``owner`` with its system message.

    ``given`` holds fields of a conversation. Raises a :class:`Problem` 400 or 404 for a bad model handle.
    """
    fields = {name: given.get(name) for name in FIELDS}
    _check_model(fields)
    with transaction.atomic():
        made = Conversation(agent=owner, hidden=given.get("hidden"), **fields)
        made.save(force_insert=True)
        _add_system(made)
    return made


def update_conversation(row: Conversation, given: Mapping[str, Any]) -> Conversation:
    """Change what ``given`` names; a null clears it. ``archived`` sets or clears ``archived_at``."""
    fields = {name: given[name] for name in FIELDS if name in given}
    _check_model(fields)
    if given.get("archived") is not None:
        fields["archived_at"] = (row.archived_at or timezone.now()) if given["archived"] else None
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=[*fields, "updated_at"])
    return row


def recompile(row: Conversation, *, dry_run: bool = False) -> str:
    """The system prompt as it is compiled now; stored as the conversation's system message unless ``dry_run``."""
    text = prompt_of(row.agent)
    if dry_run:
        return text
    with transaction.atomic():
        lock(row.pk)
        stored = Message.objects.filter(conversation=row, role=MessageRole.SYSTEM).order_by("id").first()
        if stored is None:
            _add_system(row)
        else:
            stored.parts, stored.tokens = _text_parts(text), estimate_tokens(text)
            stored.save(update_fields=["parts", "tokens", "updated_at"])
    return text


def delete_conversation(row: Conversation, actor: Any) -> None:
    """Cancel what runs or waits in it, then delete it with its messages and runs.

    A large history goes in pieces. Raises a :class:`Problem` 400 for an agent's default conversation, 409
    when new runs keep coming.
    """
    if row.is_default:
        raise Problem(400, "The default conversation of an agent cannot be deleted")
    for _ in range(TRIES):
        cancel_conversation(row, actor)
        _drop_history(row)
        if _dropped(row):
            return
    raise Problem(409, f"CONFLICT: conversation {row.wire_id} is busy; it was not deleted")


def _drop_history(row: Conversation) -> None:
    for rows in (
        ToolCall.objects.filter(conversation=row),
        Message.objects.filter(conversation=row),
        Step.objects.filter(run__conversation=row).exclude(run__status__in=ACTIVE),
        Run.objects.filter(conversation=row).exclude(status__in=ACTIVE),
    ):
        _drop(rows)


def _drop(rows: QuerySet[Any]) -> None:
    """Delete ``rows`` a few at a time, each slice in a transaction of its own; a crash leaves the rest."""
    while keys := list(rows.order_by("-pk").values_list("pk", flat=True)[:AT_ONCE]):
        rows.model._default_manager.filter(pk__in=keys).delete()


def _dropped(row: Conversation) -> bool:
    with transaction.atomic():
        lock(row.pk)
        if Run.objects.filter(conversation=row, status__in=ACTIVE).exists():
            return False
        Conversation.objects.filter(pk=row.pk).delete()
    return True


def fork_conversation(source: Conversation, *, until: Message | None = None, hidden: bool = False) -> Conversation:
    """A new conversation that begins with what ``source`` has in context, up to and with ``until``.

    A call without its result is not taken over, nor what follows it: nobody waits for it in the fork.
    Raises a :class:`Problem` 404 when ``until`` is no message of ``source``.
    """
    if until is not None and until.conversation_id != source.pk:
        raise Problem(404, f"Message with ID {until.wire_id} not found in this conversation")
    taken = _answered(_taken_over(source, until))
    kept = {name: getattr(source, name) for name in FIELDS}
    with transaction.atomic():
        fork = Conversation(agent=source.agent, hidden=hidden or None, **kept)
        fork.save(force_insert=True)
        _add_system(fork)
        Message.objects.bulk_create([_copied(row, fork) for row in taken], batch_size=AT_ONCE)
    return fork


def _taken_over(source: Conversation, until: Message | None) -> list[Message]:
    rows = Message.objects.filter(conversation=source).exclude(role=MessageRole.SYSTEM)
    if until is not None:
        rows = rows.filter(pk__lte=until.pk)
    if until is not None and until.context == MessageContext.OUT:
        rows = rows.exclude(role=MessageRole.SUMMARY)  # what it sums up is taken over itself
    else:
        rows = rows.filter(context__gt=MessageContext.OUT)
    return list(rows.order_by("-pk")[:MOST_COPIED])[::-1]


def _answered(rows: Sequence[Message]) -> list[Message]:
    """``rows`` up to the first call that has no result among them, without results whose call is not there."""
    results = {part["id"] for row in rows for part in _parts(row, "result")}
    kept: list[Message] = []
    called: set[str] = set()
    for row in rows:
        calls = {part["id"] for part in _parts(row, "call")}
        if calls - results:
            break
        called |= calls
        if all(part["id"] in called for part in _parts(row, "result")):
            kept.append(row)
    return kept


def _parts(row: Message, kind: str) -> Iterable[dict[str, Any]]:
    return (part for part in row.parts if part["type"] == kind)


def _copied(row: Message, fork: Conversation) -> Message:
    row.pk, row.uuid, row.conversation = None, uuid4(), fork
    row.run = row.step = row.batch_item = None
    row.superseded = []
    if row.context == MessageContext.OUT:
        row.context = MessageContext.IN
    return row


def _add_system(row: Conversation) -> None:
    text = prompt_of(row.agent)
    Message.objects.create(
        conversation=row,
        agent=row.agent,
        role=MessageRole.SYSTEM,
        parts=_text_parts(text),
        created_at=timezone.now(),
        tokens=estimate_tokens(text),
    )


def _text_parts(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _check_model(fields: Mapping[str, Any]) -> None:
    if fields.get("model"):
        from_handle(fields["model"])
