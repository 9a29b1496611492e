"""What people do to the records of past work: rate a step, delete a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.actions.cancel import cancel_conversation
from agents.loop.course import lock
from agents.models import Run, Step, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING


def rate_step(step: Step, given: Mapping[str, Any]) -> Step:
    """Store ``feedback`` (positive, negative or null to take it back) and ``tags``, where they were sent."""
    fields = {name: given[name] for name in ("feedback", "tags") if name in given}
    if fields.get("tags", ()) is None:
        fields["tags"] = []
    for name, value in fields.items():
        setattr(step, name, value)
    step.save(update_fields=[*fields, "updated_at"])
    return step


def delete_run(run: Run, actor: Any) -> None:
    """Delete a run with its steps and its log; its messages stay. What of its turn runs or waits is cancelled."""
    if _open(run):
        cancel_conversation(run.conversation, actor)
    with transaction.atomic():
        lock(run.conversation_id)
        Run.objects.filter(pk=run.pk).delete()


def _open(run: Run) -> bool:
    turn = run.turn_id or run.pk
    running = Run.objects.filter(Q(pk=run.pk) | Q(pk=turn) | Q(turn=turn), status__in=ACTIVE)
    return running.exists() or ToolCall.objects.filter(turn=turn, state__in=WAITING).exists()
