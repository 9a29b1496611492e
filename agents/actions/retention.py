"""Old event logs and deliveries go; runs, messages and decisions stay. Readers of such a log are told 410."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from agents.events.log import drop
from agents.models import OutboxItem, Run
from agents.models.run import ACTIVE

AT_ONCE = 10  # logs of one write transaction
DELIVERIES_AT_ONCE = 200


def drop_old_logs(now: datetime, days: int, *, seconds: float = 45.0) -> int:
    """Drop the logs of runs that ended ``days`` ago or earlier (0: none), for at most ``seconds``; how many."""
    if days <= 0:
        return 0
    deadline = time.monotonic() + seconds
    dropped = 0
    while time.monotonic() < deadline and (keys := _old(now - timedelta(days=days))):
        with transaction.atomic():
            drop(keys)
            Run.objects.filter(pk__in=keys).update(events_dropped=True)
        dropped += len(keys)
    return dropped


def drop_old_deliveries(now: datetime, days: int, *, seconds: float = 45.0) -> int:
    """Drop what was delivered or given up ``days`` ago or earlier (0: none); how many.

    A run keeps how its callback went in its own row; a batch has nothing else, so its deliveries stay.
    """
    if days <= 0:
        return 0
    deadline = time.monotonic() + seconds
    over = Q(delivered_at__isnull=False) | Q(failed_at__isnull=False)
    rows = OutboxItem.objects.filter(over, job=None, created_at__lt=now - timedelta(days=days)).order_by("pk")
    dropped = 0
    while time.monotonic() < deadline and (keys := list(rows.values_list("pk", flat=True)[:DELIVERIES_AT_ONCE])):
        dropped += OutboxItem.objects.filter(pk__in=keys).delete()[0]
    return dropped


def _old(before: datetime) -> list[int]:
    rows = Run.objects.filter(events_dropped=False, completed_at__lt=before).exclude(status__in=ACTIVE)
    return list(rows.order_by("completed_at").values_list("pk", flat=True)[:AT_ONCE])
