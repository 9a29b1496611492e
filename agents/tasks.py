"""What the queue runs every minute: at most 45 s at a time, in slices, with the progress on the rows."""

from __future__ import annotations

from dataclasses import asdict

from django.conf import settings
from django.utils import timezone

from agents.actions.desk import expire_due
from agents.actions.retention import drop_old_logs
from agents.outbox.delivery import deliver_due

SECONDS = 45.0


def expire_calls() -> dict[str, int]:
    """Deal with calls whose time is over."""
    return asdict(expire_due(timezone.now(), seconds=SECONDS))


def deliver_outbox() -> dict[str, int]:
    """Send webhooks and callbacks that are due."""
    return asdict(deliver_due(seconds=SECONDS))


def apply_retention() -> int:
    """Drop logs of runs that ended LETTAWEB_EVENTS_KEEP_DAYS ago or earlier; 0 days keep them for ever."""
    return drop_old_logs(timezone.now(), settings.LETTAWEB_EVENTS_KEEP_DAYS, seconds=SECONDS)
