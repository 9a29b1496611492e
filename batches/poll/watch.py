"""Batches at their providers are looked at: only the state that a provider says decides."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.utils import timezone

from agents.providers.base import BatchStatus, ProviderError
from batches.drivers import driver_of
from batches.drivers.base import Driver, Refusal
from batches.models import BatchItem, BatchJob, LLMBatch, LLMState
from batches.poll.again import unmake
from batches.poll.cycle import Cycle, later, poll_again_at
from batches.poll.fail import fail_items
from batches.poll.pause import PAUSES, pause

QUOTA_PAUSE = timedelta(minutes=1)
MOST_MISSES = 12  # a provider may not know its own batch for a while
log = structlog.get_logger(__name__)


def watch(cycle: Cycle, job: BatchJob) -> None:
    """Ask after every batch of ``job`` that is due."""
    for llm in cycle.due(LLMBatch.objects.filter(job=job, status=LLMState.RUNNING, local=False)):
        if cycle.over:
            break
        _look(cycle, job, llm)


def _look(cycle: Cycle, job: BatchJob, llm: LLMBatch) -> None:
    driver = driver_of(llm.provider)
    assert driver is not None
    try:
        if job.cancelled_at is not None and not llm.cancel_sent:
            status = cycle.wait(driver.provider.cancel_batch(llm.provider_batch_id))
            llm.cancel_sent = True
        else:
            status = cycle.wait(driver.provider.poll_batch(llm.provider_batch_id))
    except ProviderError as error:
        trouble(job, llm, error)
        return
    llm.polled, llm.last_polled_at, llm.troubles, llm.last_error = dict(status.raw), timezone.now(), 0, ""
    llm.next_at = poll_again_at()
    if status.state in ("ended", "expired"):
        llm.status, llm.next_at = LLMState.DOWNLOADING, None
    _save(llm)
    if status.state == "failed":
        _failed(job, llm, driver, status)


def trouble(job: BatchJob, llm: LLMBatch, error: ProviderError) -> None:
    """A question to the provider failed: ask again later, tell a person, or give the batch up."""
    log.warning("batch_not_reached", llm_batch=llm.wire_id, kind=error.kind, status=error.status, error=error.message)
    llm.troubles += 1
    llm.last_error, llm.next_at = error.message, later(llm, error.retry_after)
    _save(llm)
    if error.kind in PAUSES:
        pause(job, error.kind, error.message)
    elif error.status == 404 and llm.troubles >= MOST_MISSES:
        _give_up(job, llm, ProviderError("unknown_model", f"The provider lost the batch: {error.message}"))


def _failed(job: BatchJob, llm: LLMBatch, driver: Driver, status: BatchStatus) -> None:
    """The provider would not process the batch: nothing of it was done."""
    refusal = driver.refusal(status)
    log.warning("batch_refused", llm_batch=llm.wire_id, then=refusal.then, reason=refusal.message)
    llm.last_error = refusal.message
    _save(llm)
    if refusal.then == "fail":
        _fail(job, llm, refusal)
        return
    if refusal.then == "pause":
        pause(job, refusal.kind, refusal.message)
    else:
        job.send_after = timezone.now() + QUOTA_PAUSE
        job.save(update_fields=["send_after", "updated_at"])
    unmake(llm)


def _fail(job: BatchJob, llm: LLMBatch, refusal: Refusal) -> None:
    """Single lines were wrong: the others go again. Without any, the whole batch was."""
    if not refusal.lines:
        _give_up(job, llm, ProviderError("bad_request", refusal.message))
        return
    # The file was written in the order of the members, whose items may have been made in any order.
    keys = list(BatchItem.objects.filter(llm_batch=llm).order_by("member_id").values_list("pk", flat=True))
    for line, said in refusal.lines.items():
        if 0 < line <= len(keys):
            rows = BatchItem.objects.filter(pk=keys[line - 1])
            fail_items(job, rows, ProviderError("bad_request", said or refusal.message))
    unmake(llm)


def _give_up(job: BatchJob, llm: LLMBatch, error: ProviderError) -> None:
    fail_items(job, BatchItem.objects.filter(llm_batch=llm), error)
    llm.status, llm.ended_at = LLMState.FAILED, timezone.now()
    _save(llm)


def _save(llm: LLMBatch) -> None:
    llm.save(
        update_fields=[
            "status", "polled", "last_polled_at", "troubles", "last_error", "next_at", "cancel_sent", "ended_at",
            "updated_at",
        ]
    )  # fmt: skip
