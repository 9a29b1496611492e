"""Several courses in one transaction, for drivers that have many runs at once. The verbs are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils import timezone

from agents.events import Fence
from agents.loop.course import Course, Lost, resume


def resume_many(fences: Sequence[Fence]) -> dict[int, Course]:
    """The courses of the runs that are still ours, by run id; call it inside a transaction.

    Conversations are locked in the order of their runs: two drivers never wait for each other. What is said in
    them is said at one moment, in whatever order they are taken.
    """
    found: dict[int, Course] = {}
    now = timezone.now()
    for fence in sorted(fences, key=lambda one: one.run_id):
        try:
            course = found[fence.run_id] = resume(fence)
            course.now = now
            if _says_nothing_yet(course):
                course.last = 0
        except Lost:
            continue
    return found


def _says_nothing_yet(course: Course) -> bool:
    """Whether the log of a run that no stream belongs to must be empty: it has no answer, and began with none."""
    run = course.run
    return run.epoch == 1 and not run.steps_count and "resumes" not in run.options


def log_many(courses: Iterable[Course]) -> None:
    """Write what was said in each course and the rows of their runs; last in the transaction."""
    for course in courses:
        course.log()
