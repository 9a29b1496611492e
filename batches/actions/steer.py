"""Cancel, pause, resume, retry and delete jobs. What takes time is done by the poll."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.models import Message, MessageRole
from batches.models import OPEN_JOBS, BatchJob, BatchMember, JobStatus, LLMBatch, MemberState, Phase
from batches.poll.close import remove
from batches.poll.wish import wake
from lettaweb.lib.problems import Problem

AGAIN = (MemberState.FAILED, MemberState.EXPIRED)


def cancel(job: BatchJob) -> BatchJob:
    """Stop a job: nothing new is sent and no tool runs; what was paid for is kept. Harmless when it is over."""
    with transaction.atomic():
        rows = BatchJob.objects.filter(pk=job.pk, status__in=OPEN_JOBS, cancelled_at=None)
        now = timezone.now()
        if rows.update(cancelled_at=now, phase=Phase.CANCELLING, updated_at=now):
            LLMBatch.objects.filter(job=job, local=False).update(next_at=None)
            wake()
    job.refresh_from_db()
    return job


def pause(job: BatchJob, actor: Any) -> BatchJob:
    """Send nothing new until somebody resumes the job; what is under way goes on. A 409 when it is over."""
    now = timezone.now()
    fields = {"paused_at": now, "pause_kind": "operator", "pause_reason": f"Paused by {actor}", "phase": Phase.PAUSED}
    _open(job)
    BatchJob.objects.filter(pk=job.pk, status=JobStatus.RUNNING, paused_at=None).update(**fields, updated_at=now)
    job.refresh_from_db()
    return job


def resume(job: BatchJob) -> BatchJob:
    """Go on with a paused job at once; harmless when it is not paused. A 409 when it is over."""
    _open(job)
    with transaction.atomic():
        rows = BatchJob.objects.filter(pk=job.pk, status=JobStatus.RUNNING).exclude(paused_at=None)
        fields = {"paused_at": None, "pause_kind": "", "pause_reason": "", "phase": Phase.PREPARING, "send_after": None}
        if rows.update(**fields, updated_at=timezone.now()):
            LLMBatch.objects.filter(job=job, local=False).update(next_at=None)
            wake()
    job.refresh_from_db()
    return job


def _open(job: BatchJob) -> None:
    if job.status not in OPEN_JOBS or job.cancelled_at is not None:
        raise Problem(409, f"The job is {job.status}; it cannot be paused or resumed.")


def retry_failed(job: BatchJob) -> int:
    """Ask again for every member that failed or expired, with the messages it began with; how many.

    A job that is over runs again. Raises a :class:`Problem` 409 for a cancelled one.
    """
    if job.cancelled_at is not None:
        raise Problem(409, "The job was cancelled; make a new one.")
    count = 0
    while True:
        with transaction.atomic():
            members = list(_failed(job).select_related("agent").order_by("id")[:100])
            for member in members:
                _again(job, member)
            if members:
                count += len(members)
                _run_again(job)
        if not members:
            return count


def _failed(job: BatchJob) -> QuerySet[BatchMember]:
    return BatchMember.objects.filter(job=job, state__in=AGAIN).exclude(agent=None)


def _again(job: BatchJob, member: BatchMember) -> None:
    if member.request is None:
        member.request = _said(member)
    member.state, member.since, member.error = MemberState.WAITING, timezone.now(), None
    member.run, member.turn, member.retries = None, None, 0
    member.save()


def _said(member: BatchMember) -> dict[str, Any]:
    """What the member was asked, from the messages that its run stored."""
    run = member.run
    rows = Message.objects.filter(run_id=member.turn).order_by("id") if member.turn else Message.objects.none()
    first = rows.exclude(role__in=[MessageRole.USER, MessageRole.SYSTEM]).values_list("id", flat=True).first()
    asked = rows.filter(id__lt=first) if first else rows
    inputs = [{"role": row.role, "parts": row.parts, "fields": {"otid": row.otid, "name": row.name}} for row in asked]
    options = {key: value for key, value in (run.options if run else {}).items() if key in KEPT_OPTIONS}
    return {"inputs": inputs, "options": options}


KEPT_OPTIONS = (
    "max_steps", "client_tools", "override_model", "override_system", "use_assistant_message",
    "assistant_message_tool_name", "assistant_message_tool_kwarg",
)  # fmt: skip


def _run_again(job: BatchJob) -> None:
    fields = {"status": JobStatus.RUNNING, "phase": Phase.PREPARING, "completed_at": None, "error": None}
    BatchJob.objects.filter(pk=job.pk).exclude(status=JobStatus.RUNNING).update(**fields, updated_at=timezone.now())
    wake()


def delete(job: BatchJob) -> None:
    """Take a job out of every list. One that runs is cancelled, and its row goes when its work is over."""
    if job.status in OPEN_JOBS:
        cancel(job)
        BatchJob.objects.filter(pk=job.pk).update(deleted_at=timezone.now())
        return
    remove(job)
