"""Decisions and what else happened to parked members elsewhere: agents/ knows nothing of batches, so this looks."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from agents.actions.begin import tell_run
from agents.models import Driver, Run, RunStatus, ToolCall
from agents.models.toolcall import WAITING
from batches.models import OPEN_JOBS, BatchJob, BatchMember, MemberState
from batches.poll.cycle import Cycle
from batches.poll.places import ENDED_ELSEWHERE, GONE, end, move

AT_ONCE = 100
log = structlog.get_logger(__name__)


def pull(cycle: Cycle) -> None:
    """Give every new batch run to its member; one that has none goes on as a live run."""
    while not cycle.over:
        runs = list(Run.objects.filter(driver=Driver.BATCH, status=RunStatus.CREATED).order_by("id")[:AT_ONCE])
        if not runs:
            break
        with transaction.atomic():
            _give(runs)


def _give(runs: Sequence[Run]) -> None:
    keys = [found for run in runs if isinstance(found := (run.metadata or {}).get("batch_member"), int)]
    rows = BatchMember.objects.filter(pk__in=keys, job__status__in=OPEN_JOBS).select_related("job")
    members = {member.pk: member for member in rows}
    now = timezone.now()
    for run in runs:
        member = members.get((run.metadata or {}).get("batch_member") or 0)
        if member is None or member.state not in (MemberState.PARKED, MemberState.FAILED):
            _let_go(run)
            continue
        taken = Run.objects.filter(pk=run.pk, status=RunStatus.CREATED, epoch=run.epoch)
        if taken.update(status=RunStatus.RUNNING, epoch=F("epoch") + 1, started_at=now):
            member.run, member.state, member.since, member.error = run, MemberState.ACTING, now, None
            member.save(update_fields=["run", "state", "since", "error"])


def _let_go(run: Run) -> None:
    """Its batch is over: whoever executes runs goes on with it."""
    if Run.objects.filter(pk=run.pk, status=RunStatus.CREATED).update(driver=Driver.LIVE):
        run.driver = Driver.LIVE
        tell_run(run)


def look_after_parked(job: BatchJob) -> None:
    """End members whose calls nobody can decide any more: they were cancelled, or the agent is gone."""
    waiting = ToolCall.objects.filter(turn_id=OuterRef("turn"), state__in=WAITING)
    rows = BatchMember.objects.filter(job=job, state=MemberState.PARKED).annotate(waits=Exists(waiting))
    for member in rows.filter(waits=False).select_related("run").order_by("id")[:AT_ONCE]:
        with transaction.atomic():
            _end_or_follow(member)


def _end_or_follow(member: BatchMember) -> None:
    """What became of a parked member's run."""
    if member.agent_id is None or member.run is None:
        end(member, MemberState.FAILED, GONE)
        return
    latest = Run.objects.filter(turn_id=member.turn, pk__gt=member.run.pk).order_by("-pk").first()
    if latest is None or latest.status == RunStatus.CANCELLED:
        end(member, MemberState.CANCELLED, ENDED_ELSEWHERE)
    elif latest.driver == Driver.LIVE:
        member.run = latest  # whoever follows live runs sees how it ends
        member.save(update_fields=["run"])
        move([member], MemberState.IN_FLIGHT, timezone.now())
    elif not latest.active:
        member.run = latest
        member.save(update_fields=["run"])
        move([member], MemberState.DONE if latest.status == RunStatus.COMPLETED else MemberState.FAILED, timezone.now())
