"""Stores the decisions about calls of several conversations in one short transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from agents.actions.begin import run_row, tell_run
from agents.actions.decide import Sender, continuing, response_row
from agents.actions.requests import Verdict
from agents.actions.verdicts import decision_of, effect_of
from agents.events.wake import tell_approvals
from agents.models import Conversation, Decision, Message, Run, ToolCall
from agents.models.toolcall import WAITING

Pair = tuple[ToolCall, Verdict]


class Raced(Exception):
    """A row is not as it was read: nothing of the chunk was stored."""


def store(pairs: Sequence[Pair], sender: Sender) -> float:
    """Decide every call of ``pairs``, or none (:class:`Raced`); the seconds that the transaction took."""
    with transaction.atomic():
        began = time.monotonic()
        conversations = sorted({call.conversation_id for call, _ in pairs})
        _lock(conversations)
        _update(pairs, sender, timezone.now())
        Decision.objects.bulk_create([decision_of(call, verdict, sender) for call, verdict in pairs])
        _go_on(_complete(pairs, conversations), sender)
        tell_approvals(conversations[0])
    return time.monotonic() - began


def _lock(conversations: Sequence[int]) -> None:
    if connection.features.has_select_for_update:
        rows = Conversation.objects.select_for_update(no_key=True).filter(pk__in=conversations).order_by("pk")
        list(rows.values_list("pk"))


def _update(pairs: Sequence[Pair], sender: Sender, now: datetime) -> None:
    """One conditional update for all calls on which the verdict has the same effect."""
    alike: dict[str, list[tuple[ToolCall, dict[str, Any]]]] = defaultdict(list)
    for call, verdict in pairs:
        effect = effect_of(call, verdict, sender, now)
        alike[f"{call.version}{call.state}{effect}"].append((call, effect))
    for group in alike.values():
        call, effect = group[0]
        rows = ToolCall.objects.filter(pk__in=[one.pk for one, _ in group], state=call.state, version=call.version)
        if rows.update(**effect, version=call.version + 1, updated_at=now) != len(group):
            raise Raced


def _complete(pairs: Sequence[Pair], conversations: Sequence[int]) -> list[ToolCall]:
    """One call of each conversation in which nothing waits any more."""
    rows = ToolCall.objects.filter(conversation_id__in=conversations, returned=False, state__in=WAITING)
    waiting = set(rows.values_list("conversation_id", flat=True))
    firsts = {call.conversation_id: call for call, _ in pairs if call.conversation_id not in waiting}
    return list(firsts.values())


def _go_on(firsts: Sequence[ToolCall], sender: Sender) -> None:
    """Create the runs that go on, each with its approval response."""
    if not firsts:
        return
    now = timezone.now()
    runs = [run_row(first.conversation, continuing(first, None, sender), now) for first in firsts]
    Run.objects.bulk_create(runs)
    sent = _sent(firsts)
    responses = [response_row(run, first, sent[first.message_id]) for run, first in zip(runs, firsts, strict=True)]
    Message.objects.bulk_create(responses)
    for run in runs:
        tell_run(run)


def _sent(firsts: Sequence[ToolCall]) -> dict[int, list[dict[str, Any]]]:
    """What was decided about each gated call of each set, by message, in emission order."""
    rows = Decision.objects.filter(
        call__message_id__in=[first.message_id for first in firsts], call__gated=True, sent__isnull=False
    )
    last: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for message, call, sent in rows.order_by("pk").values_list("call__message_id", "call_id", "sent"):
        last[message][call] = dict(sent or {})
    return {message: [calls[pk] for pk in sorted(calls)] for message, calls in last.items()}
