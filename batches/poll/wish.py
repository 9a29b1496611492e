"""Ask for a poll at once, by the name of the task: it stands above everything here."""

from __future__ import annotations

from batches.poll.lease import want

TASK = "batches.tasks.poll_now"


def wake() -> None:
    """In the current transaction: there is new work. Many wishes before a poll are one."""
    if want():
        _enqueue()


def wake_anew() -> None:
    """The time of this poll is over, but not its work: another one goes on at once."""
    want()
    _enqueue()


def _enqueue() -> None:
    from django_q.tasks import async_task

    async_task(TASK)
