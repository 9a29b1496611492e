"""Stores the decisions about calls of several conversations in one short transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from agents.actions.begin import run_row, tell_run
from agents.actions.decide import Sender, continuing, response_row
from agents.actions.requests import Verdict
from agents.actions.verdicts import apply, decision_of, effect_of
from agents.events.wake import tell_approvals
from agents.models import Conversation, Decision, Message, Run, ToolCall
from agents.models.toolcall import WAITING

Pair = tuple[ToolCall, Verdict]
_OPEN = ("conversation_id", "message_id", "pk", "state", "gated")


class Raced(Exception):
    """A row is not as it was read: nothing of the chunk was stored."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a transaction did: the runs that go on, by conversation, and the seconds of work that it took."""

    runs: dict[int, Run]
    seconds: float


def store(pairs: Sequence[Pair], sender: Sender) -> Stored:
    """Decide every call of ``pairs``, or none (:class:`Raced`); the calls are as their rows are afterwards."""
    began = time.thread_time()
    with transaction.atomic():
        conversations = sorted({call.conversation_id for call, _ in pairs})
        _lock(conversations)
        decisions = [decision_of(call, verdict, sender) for call, verdict in pairs]
        _update(pairs, sender, timezone.now())
        Decision.objects.bulk_create(decisions)
        runs = _go_on(_complete(pairs, conversations), pairs, sender)
        tell_approvals(conversations[0])
    return Stored(runs, time.thread_time() - began)


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
        for call, effect in group:
            apply(call, effect)


@dataclass(frozen=True, slots=True)
class _Set:
    """A set in which nothing waits any more: one of its calls, and the keys of all that were gated."""

    first: ToolCall
    gated: tuple[int, ...]


def _complete(pairs: Sequence[Pair], conversations: Sequence[int]) -> list[_Set]:
    rows = ToolCall.objects.filter(conversation_id__in=conversations, returned=False).order_by("pk")
    open_: dict[int, list[tuple[int, int, str, bool]]] = defaultdict(list)
    for conversation, message, pk, state, gated in rows.values_list(*_OPEN):
        open_[conversation].append((message, pk, state, gated))
    sets: dict[int, _Set] = {}
    for first, _ in pairs:
        calls = open_[first.conversation_id]
        if not any(state in WAITING for _, _, state, _ in calls):
            gated = tuple(pk for message, pk, _, gated in calls if gated and message == first.message_id)
            sets[first.conversation_id] = _Set(first, gated)
    return list(sets.values())


def _go_on(sets: Sequence[_Set], pairs: Sequence[Pair], sender: Sender) -> dict[int, Run]:
    """Create the runs that go on, each with its approval response."""
    if not sets:
        return {}
    now = timezone.now()
    runs = [run_row(one.first.conversation, continuing(one.first, None, sender), now) for one in sets]
    Run.objects.bulk_create(runs)
    sent = {call.pk: dict(verdict.sent) for call, verdict in pairs}
    sent |= _sent_before([pk for one in sets for pk in one.gated if pk not in sent])
    responses = [
        response_row(run, one.first, [sent[pk] for pk in one.gated if pk in sent])
        for run, one in zip(runs, sets, strict=True)
    ]
    Message.objects.bulk_create(responses)
    for run in runs:
        tell_run(run)
    return {run.conversation_id: run for run in runs}


def _sent_before(calls: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What was decided before about ``calls``, as the wire writes it, by call."""
    if not calls:
        return {}
    rows = Decision.objects.filter(call_id__in=calls, sent__isnull=False).order_by("pk")
    return {call: dict(sent or {}) for call, sent in rows.values_list("call_id", "sent")}
