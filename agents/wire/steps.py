"""Steps as the wire writes them."""

from __future__ import annotations

from django.db.models import Max, Min

from agents.models import Step, ToolCall
from agents.wire.messages import Wire
from agents.wire.runs import nanoseconds, span_ns, token_details


def step_state(step: Step) -> Wire:
    """A step; reads ``step.run`` and ``step.agent`` (select_related them in lists)."""
    return {
        "id": step.wire_id,
        "origin": None,
        "organization_id": None,
        "provider_id": None,
        "run_id": step.run.wire_id,
        "job_id": None,
        "agent_id": step.agent.wire_id,
        **_model(step),
        "completion_tokens": step.output_tokens,
        "prompt_tokens": step.input_tokens,
        "total_tokens": step.input_tokens + step.output_tokens,
        "cached_input_tokens": step.cached_tokens,
        "cache_write_tokens": step.cache_write_tokens,
        "reasoning_tokens": step.reasoning_tokens,
        **token_details(step),
        "stop_reason": step.stop_reason,
        "tags": step.tags,
        "tid": None,
        "trace_id": None,
        "request_id": step.request_id or None,
        "messages": [],
        "feedback": step.feedback,
        "project_id": step.agent.project_id,
        "error_type": step.error_type,
        "error_data": step.error_data,
        "status": step.status,
    }


def step_metrics(step: Step) -> Wire:
    """Times of a step in nanoseconds; a start is nanoseconds since the epoch."""
    tools = ToolCall.objects.filter(step=step).aggregate(start=Min("started_at"), end=Max("finished_at"))
    return {
        "id": step.wire_id,
        "organization_id": None,
        "provider_id": None,
        "run_id": step.run.wire_id,
        "job_id": None,
        "agent_id": step.agent.wire_id,
        "step_start_ns": nanoseconds(step.created_at),
        "llm_request_start_ns": nanoseconds(step.asked_at) if step.asked_at else None,
        "llm_request_ns": span_ns(step.asked_at, step.answered_at),
        "tool_execution_ns": span_ns(tools["start"], tools["end"]),
        "step_ns": span_ns(step.created_at, step.finished_at),
        "base_template_id": step.agent.base_template_id,
        "template_id": step.agent.template_id,
        "project_id": step.agent.project_id,
    }


def _model(step: Step) -> Wire:
    provider = step.provider or None
    model = step.model or None
    return {
        "provider_name": provider,
        "provider_category": "base" if provider else None,
        "model": model,
        "model_handle": f"{provider}/{model}" if provider and model else None,
        "model_endpoint": None,
        "context_window_limit": step.context_window or None,
    }
