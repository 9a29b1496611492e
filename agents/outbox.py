"""What must leave after a commit: stored in the same transaction, signed, retried for a day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from agents.models import OutboxItem, Run


def put(kind: str, url: str, payload: Mapping[str, Any], *, run: Run | None = None, job: Any = None) -> OutboxItem:
    """Store one delivery in the current transaction; it goes out after the commit."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return OutboxItem.objects.create(kind=kind, url=url, payload=body, run=run, job=job, next_at=timezone.now())


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
