"""Calls whose time is over: denied by the clock and gone on with, or marked overdue, as their tool says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from agents.actions.begin import waiting_calls
from agents.actions.decide import Sender, go_on
from agents.actions.desk.find import locked
from agents.actions.desk.words import addressed
from agents.actions.requests import Verdict
from agents.actions.verdicts import record
from agents.events.wake import tell_approvals
from agents.models import Decision, DecisionKind, ToolCall
from agents.models.toolcall import calls_that_wait
from lettaweb.lib.problems import Problem
from tools.models import ExpireAction

AT_ONCE = 100
CLOCK = Sender(None, via="clock", name="clock")
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Expired:
    """What the clock did: calls that expired, and calls that are overdue now."""

    denied: int = 0
    overdue: int = 0


def expire_due(now: datetime, *, seconds: float = 45.0) -> Expired:
    """Deal with every call whose time is over at ``now``, for at most ``seconds``; idempotent.

    Each call is a transaction of its own; what is left at the end is found by the next look.
    """
    deadline = time.monotonic() + seconds
    denied = overdue = 0
    after = 0
    while time.monotonic() < deadline and (due := _due(now, after)):
        for pk, uuid, _ in due:
            after = pk
            if time.monotonic() > deadline:
                break
            done = _expire_quietly(uuid, now)
            denied += done == ExpireAction.DENY
            overdue += done == ExpireAction.PAUSE
    return Expired(denied, overdue)


def _due(now: datetime, after: int) -> list[tuple[int, UUID, str]]:
    rows = calls_that_wait().filter(expires_at__lte=now, pk__gt=after)
    rows = rows.exclude(expire_action=ExpireAction.PAUSE, overdue=True)
    return list(rows.order_by("pk").values_list("pk", "uuid", "expire_action")[:AT_ONCE])


def _expire_quietly(uuid: UUID, now: datetime) -> str:
    """As :func:`_expire`; a call that cannot be dealt with must not keep the others waiting."""
    try:
        return _expire(uuid, now)
    except Problem as problem:
        log.info("call_not_expired", call=str(uuid), why=str(problem))
    except Exception:
        log.exception("call_not_expired", call=str(uuid))
    return ""


def _expire(uuid: UUID, now: datetime) -> str:
    with transaction.atomic():
        call = locked(uuid)
        if not call.waiting or call.expires_at is None or call.expires_at > now:
            return ""
        if call.expire_action == ExpireAction.PAUSE:
            return "" if call.overdue else _mark_overdue(call)
        verdict = Verdict("", "expire", {}, reason="Nobody decided in time.")
        record(call, addressed(verdict, call), CLOCK)
        if not waiting_calls(call.conversation):
            go_on(call.conversation, [call], None, CLOCK)
        return ExpireAction.DENY


def _mark_overdue(call: ToolCall) -> str:
    call.overdue = True
    call.save(update_fields=["overdue", "updated_at"])
    tell_approvals(call.conversation_id)
    Decision.objects.create(
        call=call, kind=DecisionKind.OVERDUE, actor=None, actor_name=CLOCK.name, via=CLOCK.via, digest=call.digest
    )
    return ExpireAction.PAUSE
