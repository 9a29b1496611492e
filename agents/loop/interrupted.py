"""What a new owner does about what the old one left behind, and what an owner undoes before it leaves."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction

from agents.events import Fence
from agents.events.log import append_gap
from agents.loop.course import resume
from agents.models import CallState, Step, StepStatus, ToolCall
from lettaweb.lib.ids import wire_id


def wake_cold(fence: Fence) -> None:
    """Take up a run whose machine lost power: its last events may have been seen, and are not in the log.

    What readers saw of the open answer is not known, so it counts as superseded; the numbers go on far
    beyond any that were seen.
    """
    with transaction.atomic():
        resume(fence)
        step = Step.objects.filter(run_id=fence.run_id, status=StepStatus.PENDING).first()
        extra = {"superseded_message_ids": [wire_id("message", replace_message(step))]} if step else {}
        append_gap(fence, ["ping", extra])


def replace_message(step: Step) -> uuid.UUID:
    """Give the open step's answer a new id; returns the old one, which is superseded."""
    old = step.message_uuid
    step.superseded = [*step.superseded, str(old)]
    step.message_uuid = uuid.uuid4()
    step.attempt = max(step.attempt, 2)
    step.save(update_fields=["superseded", "message_uuid", "attempt", "updated_at"])
    return old


def unclaim(fence: Fence, calls: Sequence[int]) -> None:
    """Calls that were claimed and have not begun may be run by the next owner."""
    with transaction.atomic():
        resume(fence)
        rows = ToolCall.objects.filter(pk__in=calls, state=CallState.STARTED, started_epoch=fence.epoch)
        rows.update(state=CallState.READY)
