"""What people do beside deciding: hold a call, talk about it, give it more time, look at what is masked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.actions.already import already
from agents.actions.desk.find import find, locked
from agents.events.wake import tell_approvals
from agents.models import CallComment, Decision, DecisionKind, ToolCall
from agents.models.toolcall import WAITING
from agents.policies.rights import REVEAL, can
from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean_text

HOLD_SECONDS = 120
MAX_HOLD = 3600
MAX_MINUTES = 7 * 24 * 60
MAX_COMMENT = 10_000


def claim(call_uuid: UUID, user: Any, seconds: int = HOLD_SECONDS) -> ToolCall:
    """Hold a waiting call for ``seconds``, so that others see who is at it; again by the holder: longer.

    A hold is a courtesy: it ends by itself and keeps nobody from deciding. Raises a :class:`Problem` 404,
    or 409 when somebody else holds it or it does not wait.
    """
    now = timezone.now()
    until = now + timedelta(seconds=max(1, min(seconds, MAX_HOLD)))
    free = Q(held_by=None) | Q(held_by=user) | Q(held_until__lte=now) | Q(held_until=None)
    with transaction.atomic():
        rows = ToolCall.objects.filter(free, uuid=call_uuid, state__in=WAITING)
        changed = rows.update(held_by=user, held_until=until)
        call = find(call_uuid)
        if changed:
            tell_approvals(call.conversation_id)
            return call
    if not call.waiting:
        raise already(call)
    detail = {
        "code": "HELD",
        "message": f"CONFLICT: {call.held_by} is at this call.",
        "held_by": str(call.held_by),
        "held_until": call.held_until.isoformat() if call.held_until else None,
    }
    raise Problem(409, detail)


def release(call_uuid: UUID, user: Any) -> ToolCall:
    """Let go of a call that ``user`` holds; nothing happens when somebody else does. Raises a 404."""
    with transaction.atomic():
        changed = ToolCall.objects.filter(uuid=call_uuid, held_by=user).update(held_by=None, held_until=None)
        call = find(call_uuid)
        if changed:
            tell_approvals(call.conversation_id)
    return call


def comment(call_uuid: UUID, user: Any, text: str) -> CallComment:
    """Say something about a call to other people. Raises a :class:`Problem` 404, or 422 without a text."""
    kept = clean_text(text).strip()
    if not kept or len(kept) > MAX_COMMENT:
        raise Problem(422, f"text: from 1 to {MAX_COMMENT} characters are expected")
    with transaction.atomic():
        call = find(call_uuid)
        made = CallComment.objects.create(call=call, author=user, author_name=str(user), text=kept)
        ToolCall.objects.filter(pk=call.pk).update(updated_at=timezone.now())
        tell_approvals(call.conversation_id)
    return made


def extend(call_uuid: UUID, user: Any, minutes: int, *, via: str = "desk") -> ToolCall:
    """Give a call ``minutes`` more before it expires (from now, when that is past already).

    Raises a :class:`Problem` 404, 409 when it does not wait or never expires, 422 for minutes out of range.
    """
    if not 1 <= minutes <= MAX_MINUTES:
        raise Problem(422, f"minutes: a whole number from 1 to {MAX_MINUTES} is expected")
    with transaction.atomic():
        call = locked(call_uuid)
        if not call.waiting:
            raise already(call)
        if call.expires_at is None:
            raise Problem(409, "This call never expires.")
        before, now = call.expires_at, timezone.now()
        call.expires_at, call.overdue = max(before, now) + timedelta(minutes=minutes), False
        call.save(update_fields=["expires_at", "overdue", "updated_at"])
        Decision.objects.create(
            call=call, kind=DecisionKind.EXTEND, actor=user, actor_name=str(user), via=via, digest=call.digest,
            before=before.isoformat(), after=call.expires_at.isoformat(),
        )  # fmt: skip
        tell_approvals(call.conversation_id)
    return call


def reveal(call_uuid: UUID, user: Any, *, via: str = "desk") -> dict[str, Any]:
    """The arguments of a call without masks; that ``user`` looked is recorded.

    Raises a :class:`Problem` 403 without the right ``agents.reveal_secret``, or 404.
    """
    if not can(user, REVEAL):
        raise Problem(403, "You may not see masked arguments")
    call = find(call_uuid)
    Decision.objects.create(
        call=call, kind=DecisionKind.REVEAL, actor=user, actor_name=str(user), via=via, digest=call.digest
    )
    shown: dict[str, Any] = json.loads(call.runs_with)
    return shown
