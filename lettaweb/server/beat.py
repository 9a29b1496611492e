"""Whether the queue works, end to end: a task is asked to leave a mark, and the mark is looked at.

The queue's own heartbeat goes on while its workers hang, so it is not asked.
"""

from __future__ import annotations

import time
from pathlib import Path

import structlog
from django.conf import settings
from django.db import connection

log = structlog.get_logger(__name__)


def mark(number: int) -> None:
    """The task: answer question ``number``."""
    path = _path()
    draft = path.with_suffix(".new")
    draft.write_text(str(number), encoding="ascii")
    draft.replace(path)


class Heartbeat:
    """Asks and looks; ``dead`` when a question stayed open for too long."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the open question: the queue was started anew."""
        self._number = time.time_ns()
        self._asked = 0.0
        self._open = False

    def look(self) -> None:
        """Ask when the last answer is in and its time has come; one question is open at most."""
        if self._open and _answer() == self._number:
            self._open = False
        if not self._open and time.monotonic() - self._asked > settings.LETTAWEB_QUEUE_BEAT_SECONDS:
            self._number = time.time_ns()
            self._open = _ask(self._number)
            self._asked = time.monotonic()

    @property
    def dead(self) -> bool:
        return self._open and time.monotonic() - self._asked > settings.LETTAWEB_QUEUE_DEAD_SECONDS


def _ask(number: int) -> bool:
    from django_q.tasks import async_task

    try:
        async_task("lettaweb.server.beat.mark", number, q_options={"save": False, "task_name": "heartbeat"})
    except Exception as error:
        log.warning("heartbeat_not_asked", error=str(error))
        return False
    finally:
        connection.close()
    return True


def _answer() -> int:
    try:
        return int(_path().read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _path() -> Path:
    return Path(settings.LETTAWEB_DATA_DIR) / "queue.beat"
