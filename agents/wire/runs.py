"""Runs as the wire writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from agents.events import Event, page
from agents.models import Run, Step, ToolCall
from agents.wire.messages import Wire
from tools.wire import SYSTEM_USER, moment

NANOSECONDS = 1_000_000_000
REQUEST_CONFIG = {
    "use_assistant_message": True,
    "assistant_message_tool_name": "send_message",
    "assistant_message_tool_kwarg": "message",
    "include_return_message_types": None,
}


def run_state(run: Run) -> Wire:
    """A run; reads ``run.agent`` and ``run.conversation`` (select_related them in lists)."""
    return {
        "id": run.wire_id,
        "status": run.status,
        "created_at": moment(run.created_at),
        "updated_at": moment(run.updated_at),
        "completed_at": _moment(run.completed_at),
        "agent_id": run.agent.wire_id,
        "conversation_id": run.conversation.wire_name,
        "base_template_id": None,
        "background": run.background,
        "metadata": run.metadata,
        "request_config": {name: run.options.get(name, usual) for name, usual in REQUEST_CONFIG.items()},
        "stop_reason": run.stop_reason,
        "callback_url": run.callback_url,
        "callback_sent_at": _moment(run.callback_sent_at),
        "callback_status_code": run.callback_status_code,
        "callback_error": run.callback_error,
        "ttft_ns": run.ttft_ns,
        "total_duration_ns": run.total_duration_ns,
        "job_type": "run",
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
    }


def run_usage(run: Run) -> Wire:
    """The tokens of a run's model calls so far."""
    return {
        "completion_tokens": run.output_tokens,
        "prompt_tokens": run.input_tokens,
        "total_tokens": run.input_tokens + run.output_tokens,
        **token_details(run),
    }


def token_details(spent: Run | Step) -> Wire:
    return {
        "prompt_tokens_details": {
            "cached_tokens": spent.cached_tokens,
            "cache_read_tokens": spent.cached_tokens,
            "cache_creation_tokens": spent.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
    }


def run_metrics(run: Run) -> Wire:
    """Times in nanoseconds (``run_start_ns`` since the epoch) and the tools that ran."""
    names = ToolCall.objects.filter(step__run=run).order_by("name").values_list("name", flat=True).distinct()
    return {
        "id": run.wire_id,
        "organization_id": None,
        "agent_id": run.agent.wire_id,
        "project_id": run.agent.project_id,
        "run_start_ns": nanoseconds(run.started_at or run.created_at),
        "run_ns": run.total_duration_ns if run.total_duration_ns is not None else _length(run),
        "num_steps": run.steps_count,
        "tools_used": list(names),
        "template_id": run.agent.template_id,
        "base_template_id": run.agent.base_template_id,
    }


def run_trace(run: Run, limit: int) -> list[Wire]:
    """The first ``limit`` events of a run's log: the number, the kind and what it holds of each."""
    numbered = islice(_events(run.pk), limit)
    return [{"run_id": run.wire_id, "seq_id": seq, "type": event[0], "data": event[1:]} for seq, event in numbered]


def _events(run_pk: int) -> Iterator[tuple[int, Event]]:
    after = 0
    while batches := page(run_pk, after):
        for batch in batches:
            yield from enumerate(batch.events, batch.first)
        after = batches[-1].last


def nanoseconds(at: datetime) -> int:
    """A moment as nanoseconds since the epoch, exact to the microsecond."""
    seconds, rest = int(at.timestamp()), at.microsecond
    return seconds * NANOSECONDS + rest * 1000


def span_ns(start: datetime | None, end: datetime | None) -> int | None:
    """The nanoseconds from ``start`` to ``end``, None where one is not known yet."""
    if start is None or end is None:
        return None
    return max(0, nanoseconds(end) - nanoseconds(start))


def _length(run: Run) -> int | None:
    return span_ns(run.started_at or run.created_at, run.completed_at)


def _moment(at: datetime | None) -> str | None:
    return moment(at) if at else None
