"""Who lives: the row of this process, its beat, and the claims and takeovers of runs.

Times are the database's. A process whose beat is older than the lease is dead; one of this machine whose
pid is gone is dead at once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.events import Fence
from agents.models import Driver, Process, Run, RunStatus

log = structlog.get_logger(__name__)
_me: list[uuid.UUID] = []


def process_id() -> uuid.UUID:
    """The id of this process's row; it exists between ``enter`` and ``leave``."""
    return _me[0]


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def enter(kind: str) -> uuid.UUID:
    """Write the row of this process."""
    row = Process(kind=kind, host=socket.gethostname(), boot_id=boot_id(), pid=os.getpid())
    Process.objects.bulk_create(
        [
            Process(
                id=row.id, kind=kind, host=row.host, boot_id=row.boot_id, pid=row.pid, started_at=Now(), beat_at=Now()
            )
        ]
    )
    _me[:] = [row.id]
    return row.id


def leave() -> None:
    """Remove the row of this process: what it still owns is free at once."""
    if _me:
        Process.objects.filter(pk=_me[0]).delete()
        _me.clear()


def beat() -> bool:
    """Say that this process lives; False when its row is gone (somebody held it for dead)."""
    return bool(Process.objects.filter(pk=process_id()).update(beat_at=Now()))


def bury() -> None:
    """Remove the rows of dead processes, so that their runs are free."""
    old = Now() - timedelta(seconds=settings.LETTAWEB_LEASE_SECONDS)
    Process.objects.filter(beat_at__lt=old).exclude(pk__in=_me).delete()
    for row in Process.objects.filter(host=socket.gethostname()).exclude(pk__in=_me):
        if row.boot_id != boot_id() or not _alive(row.pid):
            row.delete()
    orphans = Run.objects.filter(status=RunStatus.RUNNING, driver=Driver.LIVE, owner__isnull=False)
    orphans.exclude(owner_id__in=Process.objects.values("id")).update(owner=None)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def claim(limit: int) -> list[Fence]:
    """Take up to ``limit`` live runs that nobody owns, oldest first: new ones, and those of the dead."""
    free = Run.objects.filter(driver=Driver.LIVE, owner=None, status__in=[RunStatus.CREATED, RunStatus.RUNNING])
    found = list(free.order_by("id").values_list("pk", "epoch")[:limit])
    return [fence for pk, epoch in found if (fence := _take(pk, epoch)) is not None]


def _take(run_id: int, epoch: int) -> Fence | None:
    taken = Run.objects.filter(
        pk=run_id, epoch=epoch, owner=None, status__in=[RunStatus.CREATED, RunStatus.RUNNING]
    ).update(owner_id=process_id(), epoch=F("epoch") + 1, status=RunStatus.RUNNING, started_at=Now())
    return Fence(run_id, epoch + 1) if taken else None


def lost(fences: list[Fence]) -> list[Fence]:
    """Those of ``fences`` that are not ours any more."""
    if not fences:
        return []
    rows = Run.objects.filter(pk__in=[fence.run_id for fence in fences], status=RunStatus.RUNNING)
    ours = set(rows.filter(Q(owner_id=process_id())).values_list("pk", "epoch"))
    return [fence for fence in fences if (fence.run_id, fence.epoch) not in ours]


def release(fence: Fence) -> None:
    """Give a run back without ending it: any executor may take it."""
    Run.objects.filter(pk=fence.run_id, epoch=fence.epoch, status=RunStatus.RUNNING).update(owner=None)


class Heart(threading.Thread):
    """Beats in a thread of its own on a connection of its own; calls ``on_stop`` when it could not for long."""

    def __init__(self, on_stop: Callable[[], None]) -> None:
        super().__init__(name="lease", daemon=True)
        self._end = threading.Event()
        self._on_stop = on_stop

    def run(self) -> None:
        last = time.monotonic()
        every = settings.LETTAWEB_LEASE_SECONDS / 5
        while not self._end.wait(every):
            try:
                close_old_connections()
                if not beat():
                    self._on_stop()
                last = time.monotonic()
            except DatabaseError as error:
                log.warning("beat_failed", error=str(error)[:200])
                if time.monotonic() - last > settings.LETTAWEB_LEASE_SECONDS * 2 / 3:
                    self._on_stop()
        connection.close()

    def end(self) -> None:
        self._end.set()
