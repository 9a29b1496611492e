"""Members whose provider has no batch API: their runs are executed as live ones; this follows them."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.models import Driver, Run, RunStatus
from agents.models.run import ACTIVE
from agents.providers.base import Usage
from batches.models import (
    BatchItem,
    BatchJob,
    BatchMember,
    JobStatus,
    LLMBatch,
    LLMState,
    MemberState,
    RequestStatus,
    StepState,
)
from batches.poll.cycle import Cycle
from batches.poll.places import ENDED_ELSEWHERE, GONE, STATE_OF, end, move
from batches.poll.step import ITEM_FIELDS, add_usage, note_usage
from lettaweb.lib.many import update_many

AT_ONCE = 100
REQUEST_OF = {
    RunStatus.COMPLETED: RequestStatus.COMPLETED,
    RunStatus.FAILED: RequestStatus.FAILED,
    RunStatus.CANCELLED: RequestStatus.CANCELLED,
}


def free_slots(job: BatchJob) -> int:
    """How many more members may go as live runs at once."""
    most = int(getattr(settings, "LETTAWEB_BATCH_LOCAL_RUNS", 16))
    return most - _live(job).count()


def _live(job: BatchJob) -> QuerySet[BatchMember]:
    return BatchMember.objects.filter(job=job, state=MemberState.IN_FLIGHT, run__driver=Driver.LIVE)


def under_way() -> bool:
    """Whether any open job has live runs, or members that wait for a free slot."""
    open_ = BatchMember.objects.filter(job__status=JobStatus.RUNNING, job__llm_batches__local=True)
    live = open_.filter(state=MemberState.IN_FLIGHT, run__driver=Driver.LIVE)
    return live.exists()


def follow(cycle: Cycle, job: BatchJob) -> None:
    """See what became of live runs."""
    after = 0
    while not cycle.over:
        rows = _live(job).filter(pk__gt=after).exclude(run__status__in=ACTIVE).select_related("run__agent")
        members = list(rows.order_by("id")[:AT_ONCE])
        if not members:
            break
        after = members[-1].pk
        with transaction.atomic():
            _ended(job, members)
    _lost(job)
    _close_batches(job)


def _ended(job: BatchJob, members: Sequence[BatchMember]) -> None:
    items = {item.member_id: item for item in BatchItem.objects.filter(member__in=[m.pk for m in members])}
    now = timezone.now()
    for member in members:
        run, item = member.run, items[member.pk]
        assert run is not None
        if run.stop_reason == "requires_approval" and run.status == RunStatus.COMPLETED:
            move([member], MemberState.PARKED, now)
            continue
        _note(member, item, run)
        if run.status == RunStatus.FAILED:
            end(member, MemberState.FAILED, run.error)
        else:
            move([member], STATE_OF[RunStatus(run.status)], now)
    done = [items[member.pk] for member in members if member.state != MemberState.PARKED]
    update_many(done, *ITEM_FIELDS)
    add_usage(job, done)


def _note(member: BatchMember, item: BatchItem, run: Run) -> None:
    """The item holds what all runs of its turn took."""
    total = Usage()
    for part in Run.objects.filter(Q(pk=run.turn_id or run.pk) | Q(turn_id=run.turn_id or run.pk)):
        total = Usage(
            total.input + part.input_tokens, total.output + part.output_tokens, total.cached + part.cached_tokens,
            total.cache_write + part.cache_write_tokens, total.reasoning + part.reasoning_tokens,
        )  # fmt: skip
    provider, _, model = str(run.options.get("override_model") or run.agent.model).partition("/")
    note_usage(item, provider, model, total, batch=False)
    done = run.status == RunStatus.COMPLETED
    item.request_status = REQUEST_OF[RunStatus(run.status)]
    item.step_status = StepState.COMPLETED if done else StepState.PAUSED
    item.answered_at = item.updated_at = timezone.now()


def _lost(job: BatchJob) -> None:
    """Members in flight whose run was deleted with its agent."""
    for member in BatchMember.objects.filter(job=job, state=MemberState.IN_FLIGHT, run=None)[:AT_ONCE]:
        with transaction.atomic():
            end(member, MemberState.FAILED, GONE if member.agent_id is None else ENDED_ELSEWHERE)


def batch_of(job: BatchJob, provider: str, count: int) -> LLMBatch:
    """The open group of live calls of a provider, made if there is none."""
    llm = LLMBatch.objects.filter(job=job, local=True, provider=provider, status=LLMState.RUNNING).first()
    if llm is None:
        now = timezone.now()
        llm = LLMBatch.objects.create(
            job=job, local=True, provider=provider, status=LLMState.RUNNING, submitted_at=now, attempts=1
        )
    LLMBatch.objects.filter(pk=llm.pk).update(count=F("count") + count)
    return llm


def _close_batches(job: BatchJob) -> None:
    """A group of live calls is over when none of its items is open."""
    for llm in LLMBatch.objects.filter(job=job, local=True, status=LLMState.RUNNING):
        open_ = BatchItem.objects.filter(llm_batch=llm, answered_at=None)
        if not open_.exists():
            now = timezone.now()
            LLMBatch.objects.filter(pk=llm.pk).update(status=LLMState.COMPLETED, ended_at=now, updated_at=now)
