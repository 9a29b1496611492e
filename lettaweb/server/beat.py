"""Whether the queue works, end to end: a task that does nothing is enqueued, and its result is looked for.

The queue's own heartbeat goes on while its workers hang, so it is not asked. With several servers on one
database any of their queues may answer: what matters is that tasks are done.
"""

from __future__ import annotations

import time
from pathlib import Path

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

log = structlog.get_logger(__name__)

STARTING = 120.0  # seconds that a queue may take to answer for the first time, on a busy machine
LOOK = 1.0  # seconds between two looks for an answer
GROUP = "heartbeat"


def beat() -> None:
    """The task: that it was done is all that it says."""


class Heartbeat:
    """Asks and looks; ``dead`` when a question stayed open for too long. One question is open at most."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the open question: the queue was started anew."""
        self._task = ""
        self._asked = self._looked = 0.0
        self._answered = False

    def look(self) -> None:
        """Ask when the last answer is in and its time has come. Never raises for a database that is busy."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        try:
            self._ask_or_listen(now)
        except DatabaseError as error:
            log.warning("heartbeat_not_asked", error=str(error))
        finally:
            connection.close()

    @property
    def dead(self) -> bool:
        seconds = settings.LETTAWEB_QUEUE_DEAD_SECONDS
        patience = seconds if self._answered else max(seconds, STARTING)
        return bool(self._task) and time.monotonic() - self._asked > patience

    def _ask_or_listen(self, now: float) -> None:
        if self._task:
            if _done(self._task):
                self._task, self._answered = "", True
                _stamp()
        elif now - self._asked > settings.LETTAWEB_QUEUE_BEAT_SECONDS:
            self._task, self._asked = _ask(), now


def _ask() -> str:
    from django_q.tasks import async_task

    return str(async_task("lettaweb.server.beat.beat", group=GROUP, task_name=GROUP))


def _done(task: str) -> bool:
    from django_q.models import Task

    if not Task.objects.filter(id=task).exists():
        return False
    Task.objects.filter(group=GROUP).delete()
    return True


def _stamp() -> None:
    """When the queue answered last, for people who look: the age of ``queue.beat``."""
    Path(settings.LETTAWEB_DATA_DIR, "queue.beat").write_text(str(time.time_ns()), encoding="ascii")
