"""LLM batches and items as the wire writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.models import Agent
from agents.wire.llm import llm_config_state
from batches.models import BatchItem, BatchJob, JobStatus, LLMBatch, LLMState
from batches.wire.jobs import cost_state, usage_state
from lettaweb.lib.ids import wire_id
from tools.wire import moment

Wire = dict[str, Any]
STATUS_OF: Mapping[str, str] = {
    LLMState.PREPARING: JobStatus.CREATED,
    LLMState.CREATED: JobStatus.CREATED,
    LLMState.SUBMITTING: JobStatus.CREATED,
    LLMState.UNKNOWN: JobStatus.CREATED,
    LLMState.RUNNING: JobStatus.RUNNING,
    LLMState.DOWNLOADING: JobStatus.RUNNING,
    LLMState.STEPPING: JobStatus.RUNNING,
    LLMState.COMPLETED: JobStatus.COMPLETED,
    LLMState.FAILED: JobStatus.FAILED,
    LLMState.CANCELLED: JobStatus.CANCELLED,
}


def llm_batch_state(llm: LLMBatch, job: BatchJob) -> Wire:
    return {
        "id": llm.wire_id,
        "letta_batch_job_id": job.wire_id,
        "status": STATUS_OF[llm.status],
        "state": llm.status,
        "llm_provider": llm.provider,
        "model": llm.model or None,
        "local": llm.local,
        "agent_count": llm.count,
        "provider_batch_id": llm.provider_batch_id or None,
        "create_batch_response": llm.response,
        "latest_polling_response": llm.polled,
        "created_at": moment(llm.created_at),
        "submitted_at": _moment(llm.submitted_at),
        "last_polled_at": _moment(llm.last_polled_at),
        "ended_at": _moment(llm.ended_at),
        "next_at": _moment(llm.next_at),
        "last_error": llm.last_error or None,
    }


def item_state(item: BatchItem, job: BatchJob) -> Wire:
    """An item; reads ``item.member.agent``, ``item.member.run`` and ``item.llm_batch`` (select_related them)."""
    member = item.member
    return {
        "id": item.wire_id,
        "letta_batch_job_id": job.wire_id,
        "llm_batch_id": item.llm_batch.wire_id if item.llm_batch else None,
        "agent_id": wire_id(Agent.PREFIX, item.agent_uuid),
        "llm_config": llm_config_state(member.agent.llm_config) if member.agent else None,
        "request_status": item.request_status,
        "step_status": item.step_status,
        "step_state": item.step_state,
        "batch_request_result": _result(item),
        "state": member.state,
        "position": member.position,
        "run_id": member.run.wire_id if member.run else None,
        "retries": member.retries,
        "usage": usage_state(item),
        "cost": cost_state(item),
        "error": item.error or member.error,
        "created_at": moment(item.created_at),
        "answered_at": _moment(item.answered_at),
    }


def _result(item: BatchItem) -> Wire | None:
    if item.answered_at is None:
        return None
    kind = {"completed": "succeeded", "cancelled": "canceled", "expired": "expired"}.get(item.request_status, "errored")
    return {"type": kind, **({"error": item.error} if item.error else {})}


def _moment(at: datetime | None) -> str | None:
    return moment(at) if at else None
