"""Whose runs are whose: what changed around this process, and the takeover by compare-and-set.

A run belongs to the process whose id it carries while that process lives. A process is dead when its beat is
older than the lease; one whose number must be on this machine and is not is dead at once.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q
from django.db.models.functions import Coalesce, Now

from agents import loop
from agents.events import Fence
from agents.executor.process import known, place, process_id
from agents.models import Driver, Process, Run, RunStatus
from agents.models.run import ACTIVE


@dataclass(frozen=True, slots=True)
class Free:
    """A run that nobody living owns. ``cold``: its owner's machine may have lost what it wrote last."""

    run_id: int
    epoch: int
    owner: uuid.UUID | None
    cold: bool = False


@dataclass(slots=True)
class Sight:
    """What one look found.

    ``free``: runs to take, oldest first. ``mine``: what the database says this process owns. ``late``: those of
    them that run for too long. ``gone``: dead processes that own nothing any more.
    """

    free: list[Free] = field(default_factory=list)
    mine: dict[int, Fence] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    gone: list[uuid.UUID] = field(default_factory=list)


def look() -> Sight:
    """Look around; changes nothing."""
    living, dead = _others()
    me = process_id()
    active = Run.objects.filter(driver=Driver.LIVE, status__in=ACTIVE).order_by("id")
    limit = Now() - timedelta(seconds=settings.LETTAWEB_RUN_SECONDS)
    mine = active.filter(owner_id=me).annotate(late=_is(started_at__lt=limit)).values_list("pk", "epoch", "late")
    left = active.exclude(owner_id__in=[me, *living]).values_list("pk", "epoch", "owner_id")
    sight = Sight()
    for pk, epoch, late in mine:
        sight.mine[pk] = Fence(pk, epoch)
        if late:
            sight.late.add(pk)
    sight.free = [Free(*found, cold=dead.get(found[2], False)) for found in left[: settings.LETTAWEB_MAX_RUNS]]
    owning = set(active.filter(owner_id__in=dead).values_list("owner_id", flat=True)) if dead else set()
    sight.gone = [pk for pk in dead if pk not in owning]
    return sight


def _is(**condition: object) -> ExpressionWrapper[Q]:
    return ExpressionWrapper(Q(**condition), output_field=BooleanField())


def _others() -> tuple[list[uuid.UUID], dict[uuid.UUID, bool]]:
    """The living among the other processes, and the dead, each with whether its machine lost power."""
    old = Now() - timedelta(seconds=settings.LETTAWEB_LEASE_SECONDS)
    living: list[uuid.UUID] = []
    dead: dict[uuid.UUID, bool] = {}
    for row in Process.objects.exclude(pk=process_id()).annotate(silent=_is(beat_at__lt=old)):
        cold = _other_boot(row)
        if row.silent or cold or _ended_here(row):
            dead[row.pk] = cold
        else:
            living.append(row.pk)
    return living, dead


def _other_boot(row: Process) -> bool:
    """Whether the machine of ``row`` was started anew since. Only a database file is sure to be on one machine."""
    return connection.vendor == "sqlite" and row.boot_id.partition(":")[0] != place().partition(":")[0]


def _ended_here(row: Process) -> bool:
    """Whether ``row`` has a number of this very place that no process has."""
    if row.boot_id != place() or not row.boot_id:
        return False
    if row.pid == os.getpid():
        return True  # an earlier process had the number that is ours now
    try:
        os.kill(row.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def claim(free: Sequence[Free]) -> Iterator[Fence]:
    """Take runs; those that somebody else took first are left out."""
    for found in free:
        with transaction.atomic():
            fence = _take(found)
            if fence is not None and found.cold:
                loop.wake_cold(fence)
        if fence is not None:
            yield fence


def _take(found: Free) -> Fence | None:
    rows = Run.objects.filter(pk=found.run_id, epoch=found.epoch, owner_id=found.owner, status__in=ACTIVE)
    # Its owner may stand still with the row in its hands: other runs are not to wait for this one.
    if connection.features.has_select_for_update_skip_locked and not rows.select_for_update(
        skip_locked=True, no_key=True
    ).values_list("pk"):
        return None
    taken = rows.update(
        owner_id=process_id(),
        epoch=F("epoch") + 1,
        status=RunStatus.RUNNING,
        started_at=Coalesce("started_at", Now()),
    )
    return Fence(found.run_id, found.epoch + 1) if taken else None


def outlive(kind: str) -> None:
    """Hold every process of ``kind`` for dead; for one that knows that it is the only one of its kind."""
    Process.objects.filter(kind=kind).exclude(pk__in=known()).update(beat_at=datetime.fromtimestamp(0, UTC))


def bury(gone: Sequence[uuid.UUID]) -> None:
    """Remove the rows of dead processes that own nothing any more."""
    Process.objects.filter(pk__in=gone).delete()


def release(fence: Fence) -> None:
    """Give a run back without ending it: any executor may take it. Nothing when it is not ours any more."""
    Run.objects.filter(pk=fence.run_id, epoch=fence.epoch, owner_id=process_id(), status=RunStatus.RUNNING).update(
        owner=None
    )
