"""The row of this process, and the beat that says that it lives. Times are the database's."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from agents.models import Process

log = structlog.get_logger(__name__)
_me: list[Process] = []


def process_id() -> uuid.UUID:
    """The id of this process's row: the same from ``enter`` to ``leave``, also when the row was removed."""
    return _me[0].pk


def known() -> list[uuid.UUID]:
    """The id of this process's row, none outside ``enter`` and ``leave``."""
    return [row.pk for row in _me]


def place() -> str:
    """Where process numbers mean the same: this boot of this machine, and the namespace (a container has its own)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def enter(kind: str) -> uuid.UUID:
    """Write the row of this process."""
    _me[:] = [Process(kind=kind, host=socket.gethostname(), boot_id=place(), pid=os.getpid())]
    _write()
    return process_id()


def _write() -> None:
    row = _me[0]
    row.started_at, row.beat_at = Now(), Now()
    Process.objects.bulk_create([row], ignore_conflicts=True)


def leave() -> None:
    """Remove the row of this process: what it still owns is free at once."""
    if _me:
        Process.objects.filter(pk=process_id()).delete()
        _me.clear()


def beat() -> bool:
    """Say that this process lives; False when others had held it for dead: its row is written anew."""
    if Process.objects.filter(pk=process_id()).update(beat_at=Now()):
        return True
    _write()
    return False


class Heart(threading.Thread):
    """Beats in a thread of its own on a connection of its own. Whoever cares asks how long it was ``silent``."""

    def __init__(self, on_held_for_dead: Callable[[], object]) -> None:
        super().__init__(name="lease", daemon=True)
        self._end = threading.Event()
        self._on_held_for_dead = on_held_for_dead
        self._last = time.monotonic()

    @property
    def silent(self) -> float:
        """Seconds since the begin of the last beat that the database took."""
        return time.monotonic() - self._last

    def run(self) -> None:
        every = settings.LETTAWEB_LEASE_SECONDS / 5
        while not self._end.wait(every):
            begun = time.monotonic()
            try:
                connection.close_at = None  # one connection for good: beats must not wait for a free one
                connection.close_if_unusable_or_obsolete()
                known = beat()
                self._last = begun
            except (DatabaseError, InterfaceError) as error:
                log.warning("beat_failed", error=str(error)[:200])
            else:
                if not known:
                    self._on_held_for_dead()
        connection.close()

    def end(self) -> None:
        """Stop beating; returns when no beat is under way."""
        self._end.set()
        if self.is_alive():
            self.join(timeout=10)
