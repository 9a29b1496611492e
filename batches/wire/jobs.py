"""Jobs as the wire writes them: in Letta's form, and with what that form has no place for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.models import OutboxItem
from batches.models import BatchJob, JobStatus, Spent
from tools.wire import SYSTEM_USER, moment

Wire = dict[str, Any]
STOP_REASONS = {JobStatus.COMPLETED: "end_turn", JobStatus.CANCELLED: "cancelled", JobStatus.FAILED: "error"}


def job_states(jobs: Sequence[BatchJob]) -> list[Wire]:
    """Jobs as Letta serves them; two reads, however many there are."""
    callbacks = _callbacks([job.uuid for job in jobs if job.callback_url])
    return [_state(job, callbacks.get(job.uuid)) for job in jobs]


def job_state(job: BatchJob) -> Wire:
    return job_states([job])[0]


def _callbacks(uuids: Sequence[UUID]) -> dict[UUID, OutboxItem]:
    if not uuids:
        return {}
    return {row.job: row for row in OutboxItem.objects.filter(job__in=uuids).order_by("id") if row.job}


def _state(job: BatchJob, sent: OutboxItem | None) -> Wire:
    took = (job.completed_at - job.created_at).total_seconds() if job.completed_at else None
    return {
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(job.created_at),
        "updated_at": moment(job.updated_at),
        "status": job.status,
        "completed_at": _moment(job.completed_at),
        "stop_reason": STOP_REASONS.get(JobStatus(job.status)),
        "metadata": job.metadata,
        "job_type": "batch",
        "background": False,
        "agent_id": None,
        "callback_url": job.callback_url,
        "callback_sent_at": _moment(sent.delivered_at if sent else None),
        "callback_status_code": sent.status_code if sent else None,
        "callback_error": (sent.error or None) if sent else None,
        "ttft_ns": None,
        "total_duration_ns": int(took * 1e9) if took is not None else None,
        "id": job.wire_id,
        "user_id": SYSTEM_USER,
    }


def batch_detail(job: BatchJob, counts: Mapping[str, int]) -> Wire:
    """A job with its progress, its cost and why it stands still; ``counts``: its members by state."""
    return {
        **job_state(job),
        "phase": job.phase or None,
        "paused": job.paused_at is not None,
        "pause_kind": job.pause_kind or None,
        "pause_reason": job.pause_reason or None,
        "cancelling": job.cancelled_at is not None and job.completed_at is None,
        "retry": {"max": job.retry_max},
        "total": job.total,
        "counts": dict(counts),
        "progress": round(finished(counts) / job.total, 4) if job.total else 1.0,
        "usage": usage_state(job),
        "cost": cost_state(job),
        "error": job.error,
    }


OVER = ("done", "failed", "cancelled", "expired")


def finished(counts: Mapping[str, int]) -> int:
    """How many members are over."""
    return sum(counts.get(state, 0) for state in OVER)


def usage_state(spent: Spent) -> Wire:
    return {
        "prompt_tokens": spent.input_tokens,
        "completion_tokens": spent.output_tokens,
        "total_tokens": spent.input_tokens + spent.output_tokens,
        "cached_input_tokens": spent.cached_tokens,
        "cache_write_tokens": spent.cache_write_tokens,
        "reasoning_tokens": spent.reasoning_tokens,
    }


def cost_state(spent: Spent) -> Wire:
    """Money as far as the settings price it; ``unpriced`` counts the calls that it leaves out."""
    known = bool(spent.cost) or not spent.unpriced
    return {"amount": float(spent.cost) if known else None, "unpriced": spent.unpriced}


def _moment(at: datetime | None) -> str | None:
    return moment(at) if at else None
