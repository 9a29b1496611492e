"""Requests that failed for good, or go again: what becomes of items whose provider gave no answer."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F, QuerySet
from django.utils import timezone

from agents.loop import AskFailed, Outcome
from agents.models import Run, Step, StepStatus
from agents.providers.base import ProviderError
from batches.models import BatchItem, BatchJob, BatchMember, MemberState, RequestStatus, StepState
from batches.poll.chunks import Pace
from batches.poll.places import look, make_retry_items
from lettaweb.lib.many import update_many

OWN_KINDS = frozenset({"expired", "canceled", "missing_result"})
RETRIED = frozenset({"rate_limit", "overloaded", "server", "timeout"})


def may_retry(job: BatchJob, member: BatchMember, error: ProviderError) -> bool:
    """Whether the request goes again with the next wave: its failure passes, and it has tries left."""
    return job.cancelled_at is None and error.kind in RETRIED and member.retries < job.retry_max


def fail_items(job: BatchJob, rows: QuerySet[BatchItem], error: ProviderError) -> None:
    """End all unanswered items of ``rows`` with ``error``."""
    pace = Pace()
    while items := list(rows.filter(answered_at=None).select_related("member__run").order_by("id")[: pace.size]):
        with pace.transaction(len(items)):
            fail(job, [(item, error) for item in items])


def fail(job: BatchJob, failed: Sequence[tuple[BatchItem, ProviderError]]) -> None:
    """Store failures in the caller's transaction: some members go again, the others are over."""
    if not failed:
        return
    steps = open_steps([item.member for item, _ in failed])
    over, again = [], []
    for item, error in failed:
        _note(item, error)
        if item.member.state != MemberState.IN_FLIGHT:
            continue
        if may_retry(job, item.member, error):
            again.append(item.member)
        else:
            over.append((item.member, _outcome(job, steps.get(item.member.run_id or 0, 0), error)))
    update_many([item for item, _ in failed], "request_status", "error", "answered_at", "updated_at")
    _again(job, again)
    look(job, over)


def _outcome(job: BatchJob, step: int, error: ProviderError) -> Outcome:
    """What the loop is told; of a cancelled job only that it ends."""
    return None if job.cancelled_at is not None else AskFailed(step, error)


def _note(item: BatchItem, error: ProviderError) -> None:
    now = timezone.now()
    item.request_status = {"expired": RequestStatus.EXPIRED, "canceled": RequestStatus.CANCELLED}.get(
        error.detail, RequestStatus.FAILED
    )
    item.step_status = StepState.PAUSED
    kind = error.detail if error.detail in OWN_KINDS else error.kind
    item.error = {"type": kind, "message": error.message, "detail": error.detail}
    item.answered_at = item.updated_at = now


def _again(job: BatchJob, members: Sequence[BatchMember]) -> None:
    if not members:
        return
    # A new epoch makes the loop take up the step that is open.
    Run.objects.filter(pk__in=[member.run_id for member in members]).update(epoch=F("epoch") + 1)
    keys = [member.pk for member in members]
    BatchMember.objects.filter(pk__in=keys).update(
        state=MemberState.READY, since=timezone.now(), retries=F("retries") + 1
    )
    make_retry_items(job, members)


def open_steps(members: Sequence[BatchMember]) -> dict[int, int]:
    """The open step of each member's run, by run id."""
    rows = Step.objects.filter(run__in=[member.run_id for member in members], status=StepStatus.PENDING)
    return dict(rows.values_list("run_id", "pk"))
