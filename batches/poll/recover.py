"""After a crash, or a create that was not answered: find out what is at the provider before anything is sent again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agents.models import Run
from agents.providers.base import BatchStatus, ProviderError
from agents.providers.lines import load_line, text_of
from batches.drivers import driver_of
from batches.drivers.base import Driver
from batches.models import OPEN_JOBS, BatchItem, BatchJob, BatchMember, LLMBatch, LLMState, MemberState
from batches.poll.again import AT_ONCE, take_back, unmake
from batches.poll.cycle import Cycle, later, poll_again_at
from batches.poll.pause import PAUSES, pause
from batches.poll.spool import intact, remove, stray
from batches.poll.submit import accept

MOST_LOOKS = 3  # in vain, before it is sent again
SAMPLE = 50  # lines of a result file to look at
log = structlog.get_logger(__name__)


def take_over() -> None:
    """What an earlier poller left in the middle: once per lease, before anything else."""
    rows = LLMBatch.objects.filter(job__status__in=OPEN_JOBS)
    rows.filter(status=LLMState.SUBMITTING).update(status=LLMState.UNKNOWN, next_at=None, updated_at=timezone.now())
    for llm in rows.filter(status=LLMState.PREPARING, local=False):
        unmake(llm)
    take_back_unwritten()
    # Calls that were started belong to the old epoch from now on: the loop asks what became of them.
    acting = BatchMember.objects.filter(job__status__in=OPEN_JOBS, state=MemberState.ACTING)
    Run.objects.filter(pk__in=acting.values("run")).update(epoch=F("epoch") + 1)
    for name in stray(set(rows.filter(status__in=KEEP_FILES).values_list("uuid", flat=True))):
        remove(name)


def take_back_unwritten() -> None:
    """Members that were prepared while their request got into no file."""
    rows = BatchItem.objects.filter(llm_batch=None, answered_at=None, member__state=MemberState.IN_FLIGHT)
    rows = rows.filter(job__status__in=OPEN_JOBS)
    while keys := list(rows.order_by("id").values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            take_back(keys)


KEEP_FILES = (LLMState.CREATED, LLMState.SUBMITTING, LLMState.UNKNOWN)


def recover(cycle: Cycle, job: BatchJob) -> None:
    """Look for every batch of ``job`` that may or may not exist."""
    for llm in cycle.due(LLMBatch.objects.filter(job=job, status=LLMState.UNKNOWN)):
        if cycle.over:
            break
        _look(cycle, job, llm)


def _look(cycle: Cycle, job: BatchJob, llm: LLMBatch) -> None:
    driver = driver_of(llm.provider)
    assert driver is not None
    since = (llm.submitted_at or llm.created_at).timestamp()
    try:
        seen = cycle.wait(driver.provider.find_batches(since=since, key=str(llm.uuid)))
        found = _ours(cycle, llm, driver, _candidates(llm, driver, seen))
    except ProviderError as error:
        llm.troubles += 1
        llm.last_error, llm.next_at = error.message, later(llm, error.retry_after)
        _save(llm)
        if error.kind in PAUSES:
            pause(job, error.kind, error.message)
        return
    if isinstance(found, BatchStatus):
        log.info("batch_adopted", llm_batch=llm.wire_id, provider_batch=found.id)
        llm.adopted = True
        accept(llm, found)
    elif found is None:
        _in_vain(llm)
    else:
        llm.next_at = poll_again_at()
        _save(llm)


def _candidates(llm: LLMBatch, driver: Driver, seen: Sequence[BatchStatus]) -> list[BatchStatus]:
    """Those of the provider's batches that may be this one: nobody else's, and of its size."""
    taken = set(
        LLMBatch.objects.filter(
            provider=llm.provider, provider_batch_id__in=[status.id for status in seen]
        ).values_list("provider_batch_id", flat=True)
    )
    free = [status for status in seen if status.id not in taken and status.id not in llm.foreign_ids]
    return [status for status in free if driver.count(status) in (None, llm.count)]


def _ours(
    cycle: Cycle, llm: LLMBatch, driver: Driver, candidates: Sequence[BatchStatus]
) -> BatchStatus | Sequence[BatchStatus] | None:
    """The batch that is this one; None when there is none; the candidates when it cannot be told yet.

    Results name their requests: an ended batch proves whose it is. A single candidate that has not ended is
    taken on trust; its results will show.
    """
    left = []
    for status in candidates:
        if status.state not in ("ended", "expired"):
            left.append(status)
        elif cycle.wait(_holds(driver, status.id, _names(llm))):
            return status
        else:
            llm.foreign_ids = [*llm.foreign_ids, status.id]
    if len(left) == 1 and not _others_look(llm):
        return left[0]
    return left or None


def _others_look(llm: LLMBatch) -> bool:
    rows = LLMBatch.objects.filter(provider=llm.provider, status=LLMState.UNKNOWN, count=llm.count)
    return rows.exclude(pk=llm.pk).exists()


def _names(llm: LLMBatch) -> set[str]:
    return {f"{BatchItem.PREFIX}-{uuid}" for uuid in llm.items.values_list("uuid", flat=True)}


async def _holds(driver: Driver, batch_id: str, names: set[str]) -> bool:
    """Whether the results of an ended batch name our requests."""
    count = 0
    async with aclosing(driver.provider.batch_results(batch_id)) as lines:  # type: ignore[type-var]
        async for line in lines:
            count += 1
            if text_of((load_line(line) or {}).get("custom_id")) in names:
                return True
            if count == SAMPLE:
                break
    return False


def _in_vain(llm: LLMBatch) -> None:
    llm.looks += 1
    llm.next_at = poll_again_at()
    if llm.looks >= MOST_LOOKS:
        log.warning("batch_was_never_made", llm_batch=llm.wire_id)
        if not intact(llm.uuid, llm.size, llm.digest):
            unmake(llm)
            return
        llm.status, llm.next_at = LLMState.CREATED, None
    _save(llm)


def not_ours(llm: LLMBatch) -> bool:
    """An adopted batch whose results name none of our requests: it is somebody else's, the search goes on.

    False when the id came from the provider itself: then it is ours, whatever stands in its results.
    """
    if not llm.adopted:
        return False
    log.warning("adopted_the_wrong_batch", llm_batch=llm.wire_id, provider_batch=llm.provider_batch_id)
    llm.foreign_ids = [*llm.foreign_ids, llm.provider_batch_id]
    llm.provider_batch_id, llm.status, llm.looks, llm.next_at = "", LLMState.UNKNOWN, 0, None
    _save(llm)
    return True


def _save(llm: LLMBatch) -> None:
    llm.save(
        update_fields=[
            "status", "provider_batch_id", "looks", "troubles", "last_error", "next_at", "foreign_ids", "updated_at",
        ]
    )  # fmt: skip
