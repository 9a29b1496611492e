"""What must leave after a commit: stored in the same transaction, signed, retried for a day.

``deliver_due`` (:mod:`agents.outbox.delivery`) sends it; nothing here waits for anybody.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.models import OutboxItem, Run, ToolCall
from agents.outbox.address import check_url

__all__ = ["approvals_wait", "check_url", "put", "run_ended"]

TASK = "agents.tasks.deliver_outbox"
PAUSE = 0.2  # seconds between two wake-ups of the queue; a delivery looks on for longer than that
log = structlog.get_logger(__name__)
_lock = threading.Lock()
_woken = float("-inf")


def put(kind: str, url: str, payload: Mapping[str, Any], *, run: Run | None = None, job: Any = None) -> OutboxItem:
    """Store one delivery in the current transaction; it goes out after the commit."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    item = OutboxItem.objects.create(kind=kind, url=url, payload=body, run=run, job=job, next_at=timezone.now())
    transaction.on_commit(_wake_queue, robust=True)
    return item


def run_ended(run: Run) -> None:
    """A run with a callback address has ended."""
    if not run.callback_url:
        return
    payload = {
        "run_id": run.wire_id,
        "agent_id": run.agent.wire_id,
        "status": run.status,
        "stop_reason": run.stop_reason,
        "completed_at": run.completed_at.isoformat() if run.completed_at else None,
        "metadata": run.metadata,
    }
    put("run.ended", run.callback_url, payload, run=run)


def approvals_wait(run: Run, calls: Sequence[ToolCall]) -> None:
    """Calls of ``run`` began to wait for people: tell LETTAWEB_WEBHOOK_URL which, never with what arguments."""
    url = settings.LETTAWEB_WEBHOOK_URL
    if not url:
        return
    data = {
        "agent_id": run.agent.wire_id,
        "agent_name": run.agent.name,
        "conversation_id": run.conversation.wire_id,
        "run_id": run.wire_id,
        "calls": [_shown(call) for call in calls],
    }
    put("approval.waiting", url, {"type": "approval.waiting", "timestamp": timezone.now().isoformat(), "data": data})


def _shown(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.wire_id,
        "tool_call_id": call.call_id,
        "tool": call.name,
        "state": call.state,
        "risk": call.risk,
        "expires_at": call.expires_at.isoformat() if call.expires_at else None,
    }


def _wake_queue() -> None:
    """Ask the queue to deliver now; the tick of the next minute finds what this loses."""
    global _woken
    with _lock:
        if time.monotonic() - _woken < PAUSE:
            return
        _woken = time.monotonic()
    from django_q.tasks import async_task

    async_task(TASK)
