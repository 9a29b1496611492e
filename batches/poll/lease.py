"""One poller at a time over all processes: a row with its owner, and a beat by the database's clock."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import Q
from django.db.models.functions import Now

from agents.executor.process import place
from batches.models import PollerLease

SECONDS = 30.0
log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """Somebody else polls now: this poller could not beat for too long."""


def want() -> bool:
    """Say in the current transaction that there is new work; False when somebody had said so already."""
    PollerLease.objects.get_or_create(id=1)
    return bool(PollerLease.objects.filter(id=1, wanted=False).update(wanted=True))


def take_wish() -> bool:
    """Whether there was new work; a later wish counts anew."""
    return bool(PollerLease.objects.filter(id=1, wanted=True).update(wanted=False))


def wished() -> bool:
    """Whether there is new work that no cycle has begun to look at."""
    return PollerLease.objects.filter(id=1, wanted=True).exists()


class Held:
    """The lease while it is ours. A thread of its own beats for it; :meth:`check` raises when that failed."""

    def __init__(self, owner: uuid.UUID) -> None:
        self.owner = owner
        self._end = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="poller-lease", daemon=True)

    def check(self) -> None:
        """Raises :class:`LeaseLost`; to be called before every step that others would see."""
        if self._lost.is_set():
            raise LeaseLost

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(timeout=SECONDS)
        PollerLease.objects.filter(owner=self.owner).update(owner=None, pid=0)

    def _beat(self) -> None:
        missed = 0
        while not self._end.wait(SECONDS / 6):
            try:
                close_old_connections()
                alive = PollerLease.objects.filter(owner=self.owner).update(beat_at=Now())
                missed = 0 if alive else 4
            except DatabaseError as error:
                missed += 1
                log.warning("poller_beat_failed", error=str(error)[:200])
            if missed >= 4:
                self._lost.set()
                break
        connection.close()


@contextmanager
def hold() -> Iterator[Held | None]:
    """The lease for the time of the block; None when somebody else polls."""
    held = _acquire()
    if held is None:
        yield None
        return
    held.start()
    try:
        yield held
    finally:
        held.end()


def _acquire() -> Held | None:
    row, _ = PollerLease.objects.get_or_create(id=1)
    dead = Q(beat_at__lt=Now() - timedelta(seconds=SECONDS)) | Q(owner=None)
    if _is_dead_here(row):
        dead |= Q(owner=row.owner)
    mine = uuid.uuid4()
    taken = PollerLease.objects.filter(dead, id=1).update(
        owner=mine, host=socket.gethostname(), boot_id=place(), pid=os.getpid(), beat_at=Now()
    )
    return Held(mine) if taken else None


def _is_dead_here(row: PollerLease) -> bool:
    """Whether the owner was a process of this machine that is gone."""
    if row.owner is None or row.host != socket.gethostname():
        return False
    if row.boot_id != place():
        return True
    try:
        os.kill(row.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
