"""A job that cannot go on without a person: nothing new is sent until somebody resumes it."""

from __future__ import annotations

import structlog
from django.utils import timezone

from batches.models import BatchJob, Phase

PAUSES = {
    "insufficient_credits": "billing",
    "authentication": "authentication",
    "not_configured": "authentication",
}
"""Kinds of failures that no item can be blamed for, and what a person must look after."""

log = structlog.get_logger(__name__)


def pause(job: BatchJob, kind: str, message: str) -> None:
    """Pause the job with a reason that an operator can act on."""
    now = timezone.now()
    what = PAUSES.get(kind, kind)
    fields = {"paused_at": now, "pause_kind": what, "pause_reason": message, "phase": Phase.PAUSED, "updated_at": now}
    if BatchJob.objects.filter(pk=job.pk, paused_at=None).update(**fields):
        log.warning("job_paused", job=job.wire_id, why=what, reason=message)
    job.paused_at, job.pause_kind, job.pause_reason = now, what, message
