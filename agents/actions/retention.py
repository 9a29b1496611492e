"""Old event logs go; runs, messages and decisions stay. Readers of such a run are told 410 afterwards."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import transaction

from agents.events.log import drop
from agents.models import Run
from agents.models.run import ACTIVE

AT_ONCE = 10  # logs of one write transaction


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


def _old(before: datetime) -> list[int]:
    rows = Run.objects.filter(events_dropped=False, completed_at__lt=before).exclude(status__in=ACTIVE)
    return list(rows.order_by("completed_at").values_list("pk", flat=True)[:AT_ONCE])
