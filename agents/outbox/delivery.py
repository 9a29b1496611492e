"""Sends what is due, several at once, and writes back how it went. Safe to run twice at the same time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.utils import timezone

from agents.models import OutboxItem, Run
from agents.outbox.post import Answer, post
from agents.outbox.signing import signed

AT_ONCE = 8
HIDDEN = timedelta(minutes=2)  # while somebody sends an item, nobody else takes it
KEEP_TRYING = timedelta(days=1)
LINGER = 1.0  # seconds to look on after the last item: wake-ups are sent less often than items are stored
DELAYS = (5, 30, 120, 600, 1800, 3600, 7200, 14400)  # seconds after the first, second … failure
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one look did."""

    sent: int = 0
    failed: int = 0


def deliver_due(*, seconds: float = 45.0, linger: float = LINGER) -> Delivered:
    """Deliver everything that is due, for at most ``seconds`` and until nothing came for ``linger``."""
    deadline = time.monotonic() + seconds
    sent = failed = 0
    quiet_since = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="outbox") as threads:
        while time.monotonic() < deadline:
            items = _claim()
            if items:
                answers = list(threads.map(_send, items))
                good = sum(answer.delivered for answer in answers)
                sent, failed = sent + good, failed + len(answers) - good
                _store(items, answers)
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= linger:
                break
            else:
                time.sleep(min(0.1, linger))
    return Delivered(sent, failed)


def _claim() -> list[OutboxItem]:
    """Take the next items that are due; each is taken by one looker only."""
    now = timezone.now()
    due = OutboxItem.objects.filter(delivered_at=None, failed_at=None, next_at__lte=now).order_by("next_at")
    mine: list[OutboxItem] = []
    found = list(due[:AT_ONCE])
    if found:
        with transaction.atomic():
            mine = [item for item in found if _take(item, now)]
    return mine


def _take(item: OutboxItem, now: datetime) -> bool:
    rows = OutboxItem.objects.filter(pk=item.pk, attempts=item.attempts, delivered_at=None, failed_at=None)
    taken = rows.update(attempts=item.attempts + 1, next_at=now + HIDDEN, updated_at=now)
    item.attempts += 1
    return bool(taken)


def _send(item: OutboxItem) -> Answer:
    """One call; runs in a thread without the database."""
    try:
        return post(item.url, item.payload, signed(item.wire_id, timezone.now(), item.payload))
    except Exception as error:
        log.exception("delivery_failed", item=item.wire_id)
        return Answer(error=f"{type(error).__name__}: {error}"[:500])


def _store(items: Sequence[OutboxItem], answers: Sequence[Answer]) -> None:
    with transaction.atomic():
        for item, answer in zip(items, answers, strict=True):
            _store_one(item, answer, timezone.now())


def _store_one(item: OutboxItem, answer: Answer, now: datetime) -> None:
    item.status_code, item.error = answer.status or None, answer.error
    if answer.delivered:
        item.delivered_at = now
    else:
        item.next_at = now + timedelta(seconds=DELAYS[min(item.attempts, len(DELAYS)) - 1])
        if answer.final or item.next_at > item.created_at + KEEP_TRYING:
            item.failed_at = now
    item.save(update_fields=["status_code", "error", "delivered_at", "failed_at", "next_at", "updated_at"])
    if item.kind == "run.ended" and item.run_id:
        Run.objects.filter(pk=item.run_id).update(
            callback_status_code=item.status_code,
            callback_error=answer.error or None,
            callback_sent_at=item.delivered_at,
        )
