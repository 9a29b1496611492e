"""A second attempt at an answer says something else: it gets an id of its own, and readers are told."""

from __future__ import annotations

from django.db import transaction

from agents.events import Batch, Fence, StepHead
from agents.loop.course import resume
from agents.loop.interrupted import replace_message
from agents.models import Step
from agents.wire.messages import date
from lettaweb.lib.ids import wire_id


def supersede(fence: Fence, step_id: int) -> tuple[Batch, StepHead]:
    """Give the open step a new message id; returns the ping that says so, and the new head."""
    with transaction.atomic():
        course = resume(fence)
        step = Step.objects.get(pk=step_id)
        old = replace_message(step)
        course.say(["ping", {"superseded_message_ids": [wire_id("message", old)]}])
        batch = course.log()
    assert batch is not None
    return batch, StepHead(str(step.message_uuid), step.wire_id, date(step.asked_at or course.now))
