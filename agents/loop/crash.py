"""A run whose driver met a bug: it ends, and its conversation stays usable."""

from __future__ import annotations

from django.db import transaction

from agents.events import Fence
from agents.loop.course import Lost, resume
from agents.loop.ending import close_calls, end, fail_open_step
from agents.models import StepStatus

ERROR = {"type": "internal_error", "message": "An unknown error occurred", "detail": ""}


def fail_run(fence: Fence) -> None:
    """End the run as failed; nothing when it is not ours any more."""
    try:
        with transaction.atomic():
            course = resume(fence)
            close_calls(course, "The run failed before this call was finished; its outcome is unknown.")
            fail_open_step(course, StepStatus.FAILED, ERROR)
            end(course, "error", ERROR)
            course.log()
    except Lost:
        return
