"""What the queue runs for batches: at most 45 s at a time, with the progress on the rows."""

from __future__ import annotations

import time

from django.conf import settings

from batches import poll as poller
from batches.models import BatchJob, JobStatus
from lettaweb.lib import drain

SECONDS = 45.0
SHORTEST = 1.0  # seconds of a tick that are worth another poll


def poll() -> None:
    """Every minute: poll, and poll again within the minute as often as the setting says."""
    end = time.monotonic() + SECONDS
    pause = max(float(settings.LETTAWEB_BATCH_POLL_SECONDS), SHORTEST)
    while True:
        poller.run(end - time.monotonic())
        open_ = BatchJob.objects.filter(status=JobStatus.RUNNING)
        if time.monotonic() + pause + SHORTEST > end or not open_.exists() or drain.rest(pause):
            break


def poll_now() -> None:
    """Somebody has new work: one poll."""
    poller.run(SECONDS)
