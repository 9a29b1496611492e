"""What the queue runs every minute: at most 45 s at a time, in slices, with the progress on the rows."""

from __future__ import annotations

from dataclasses import asdict

from django.conf import settings
from django.utils import timezone

from agents.actions.desk import expire_due
from agents.actions.retention import drop_old_deliveries, drop_old_logs
from agents.outbox.delivery import deliver_due

SECONDS = 45.0


def expire_calls() -> dict[str, int]:
    """Deal with calls whose time is over."""
    return asdict(expire_due(timezone.now(), seconds=SECONDS))


def deliver_outbox() -> dict[str, int]:
    """Send webhooks and callbacks that are due."""
    return asdict(deliver_due(seconds=SECONDS))


def apply_retention() -> int:
    """Drop logs of runs, and deliveries, that are over for LETTAWEB_EVENTS_KEEP_DAYS; 0 days keep them for ever."""
    now, days = timezone.now(), settings.LETTAWEB_EVENTS_KEEP_DAYS
    logs = drop_old_logs(now, days, seconds=SECONDS * 0.8)
    return logs + drop_old_deliveries(now, days, seconds=SECONDS * 0.2)
