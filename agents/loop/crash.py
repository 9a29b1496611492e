"""A run whose driver met a bug, or that takes for ever: it ends, and its conversation stays usable."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from django.db import transaction

from agents.events import Fence
from agents.loop.course import Lost, resume
from agents.loop.ending import close_calls, end, fail_open_step, usage_of
from agents.models import RunStatus, StepStatus
from lettaweb.lib.transient import passes

ERROR = {"type": "internal_error", "message": "An unknown error occurred", "detail": ""}
TOO_LATE = {
    "type": "internal_error",
    "message": "The run took too long and was ended.",
    "detail": "LETTAWEB_RUN_SECONDS says how long a run may take.",
}
log = structlog.get_logger(__name__)


def fail_run(fence: Fence, error: Mapping[str, str] = ERROR) -> None:
    """End the run as failed; nothing when it is not ours any more.

    Where not even its open calls can be closed they stay open: the next message closes them.
    """
    try:
        _fail(fence, error)
    except Lost:
        return
    except Exception as second:
        if passes(second):
            raise
        log.exception("run_failed_untidily", run=fence.run_id)
        _stop(fence, error)


def _fail(fence: Fence, error: Mapping[str, str]) -> None:
    with transaction.atomic():
        course = resume(fence)
        course.run.stop_reason = "error"
        close_calls(course, "The run failed before this call was finished; its outcome is unknown.")
        fail_open_step(course, StepStatus.FAILED, error)
        end(course, "error", error)
        course.log()


def _stop(fence: Fence, error: Mapping[str, str]) -> None:
    """The least that readers need to see the end."""
    with transaction.atomic():
        course = resume(fence)
        run = course.run
        run.status, run.stop_reason, run.error = RunStatus.FAILED, "error", dict(error)
        run.completed_at, run.owner = course.now, None
        course.say(["stop", "error"], ["error", dict(error)], ["usage", usage_of(run)])
        course.touch()
        course.log()
