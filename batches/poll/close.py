"""Jobs end: when nothing of them waits, runs or is at a provider. What a job does is shown while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from agents import outbox
from batches.models import (
    OPEN_JOBS,
    OPEN_LLM,
    BatchItem,
    BatchJob,
    BatchMember,
    JobStatus,
    LLMBatch,
    LLMState,
    MemberState,
    Phase,
)
from batches.models.item import OPEN_MEMBERS

PIECE = 200  # rows of one deletion
UNMADE = timedelta(minutes=10)
ENDS = {
    MemberState.FAILED: JobStatus.FAILED,
    MemberState.EXPIRED: JobStatus.EXPIRED,
    MemberState.CANCELLED: JobStatus.CANCELLED,
}


def members_by_state(job: BatchJob) -> dict[str, int]:
    """How many members are in each state, without the empty ones."""
    rows = BatchMember.objects.filter(job=job).order_by().values_list("state")
    return dict(rows.annotate(count=Count("id")))


def close(job: BatchJob) -> bool:
    """End the job if nothing of it is open, else note what it does; whether it ended."""
    counts = members_by_state(job)
    open_ = any(counts.get(state) for state in OPEN_MEMBERS)
    if open_ or LLMBatch.objects.filter(job=job, status__in=OPEN_LLM).exists():
        phase = _phase(job, counts)
        BatchJob.objects.filter(pk=job.pk, status=JobStatus.RUNNING).exclude(phase=phase).update(phase=phase)
        return False
    with transaction.atomic():
        _end(job, counts)
    if job.deleted_at is not None:
        remove(job)
    return True


def remove(job: BatchJob) -> None:
    """Delete a job that is over, piece by piece: no transaction holds the writer long."""
    for rows in (BatchItem.objects.filter(job=job), BatchMember.objects.filter(job=job)):
        while keys := list(rows.order_by("id").values_list("pk", flat=True)[:PIECE]):
            rows.model._default_manager.filter(pk__in=keys).delete()
    job.delete()


def _end(job: BatchJob, counts: Mapping[str, int]) -> None:
    now = timezone.now()
    status = _status(job, counts)
    rows = BatchJob.objects.filter(pk=job.pk, status__in=OPEN_JOBS)
    fields = {"status": status, "phase": Phase.NONE, "completed_at": now, "paused_at": None, "updated_at": now}
    if not rows.update(**fields):
        return
    job.refresh_from_db()
    if job.callback_url:
        outbox.put("batch.ended", job.callback_url, payload(job, counts), job=job.uuid)


def _status(job: BatchJob, counts: Mapping[str, int]) -> JobStatus:
    if job.cancelled_at is not None:
        return JobStatus.CANCELLED
    if counts.get(MemberState.DONE):
        return JobStatus.COMPLETED
    ends = {ENDS[MemberState(state)] for state in counts}
    return ends.pop() if len(ends) == 1 else JobStatus.FAILED


def payload(job: BatchJob, counts: Mapping[str, int]) -> dict[str, object]:
    """What a callback says of a job that has ended."""
    return {
        "job_id": job.wire_id,
        "status": job.status,
        "completed_at": job.completed_at.isoformat() if job.completed_at else None,
        "total": job.total,
        "counts": dict(counts),
        "metadata": job.metadata,
    }


def _phase(job: BatchJob, counts: Mapping[str, int]) -> Phase:
    if job.cancelled_at is not None:
        return Phase.CANCELLING
    if job.paused_at is not None:
        return Phase.PAUSED
    states = set(LLMBatch.objects.filter(job=job, status__in=OPEN_LLM).values_list("status", flat=True))
    for state, phase in ((LLMState.DOWNLOADING, Phase.INGESTING), (LLMState.STEPPING, Phase.STEPPING)):
        if state in states:
            return phase
    if counts.get(MemberState.ACTING):
        return Phase.STEPPING
    if counts.get(MemberState.IN_FLIGHT):
        return Phase.WAITING_PROVIDER
    if counts.get(MemberState.READY):
        return Phase.PREPARING
    return Phase.AWAITING_APPROVAL if counts.get(MemberState.PARKED) else Phase.PREPARING


def close_unmade() -> None:
    """Jobs whose creation was interrupted: nobody was told of them, they never run."""
    old = timezone.now() - UNMADE
    error = {"type": "interrupted", "message": "The server was interrupted while the job was made"}
    rows = BatchJob.objects.filter(status=JobStatus.CREATED, created_at__lt=old)
    rows.update(status=JobStatus.FAILED, error=error, completed_at=timezone.now())
