"""Files go to their provider: the intent is stored first, the request goes out once, the answer is stored last."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.utils import timezone

from agents.providers.base import BatchStatus, ProviderError
from batches.drivers import driver_of
from batches.models import BatchItem, BatchJob, LLMBatch, LLMState
from batches.poll.again import unmake
from batches.poll.cycle import Cycle, later, poll_again_at
from batches.poll.fail import fail_items
from batches.poll.halves import halve
from batches.poll.pause import PAUSES, pause
from batches.poll.spool import intact, path_of, remove
from lettaweb.lib.faults import reach

MAYBE = frozenset({"timeout", "connection", "server", "overloaded"})
"""Failures after which the batch may exist all the same."""
LONGEST_DOUBT = timedelta(hours=1)
log = structlog.get_logger(__name__)


def submit(cycle: Cycle, job: BatchJob) -> int:
    """Send the files of ``job`` that are due; how many were accepted."""
    count = 0
    for llm in cycle.due(LLMBatch.objects.filter(job=job, status=LLMState.CREATED)):
        if cycle.over or job.paused_at is not None:
            break
        if not _in_doubt(llm.provider):
            count += send(cycle, job, llm)
    return count


def _in_doubt(provider: str) -> bool:
    """Whether it is unknown if the provider took the last file: a second one would make them hard to tell apart.

    A doubt that only another program's batches keep open may last for a day; that long nobody waits.
    """
    rows = LLMBatch.objects.filter(provider=provider, status=LLMState.UNKNOWN)
    return rows.filter(submitted_at__gt=timezone.now() - LONGEST_DOUBT).exists()


def send(cycle: Cycle, job: BatchJob, llm: LLMBatch) -> bool:
    """Send one file; True when its provider has it."""
    if not intact(llm.uuid, llm.size, llm.digest):
        log.warning("spool_damaged", llm_batch=llm.wire_id)
        unmake(llm)
        return False
    if not _intend(llm):
        return False
    reach("batch_intended")
    driver = driver_of(llm.provider)
    assert driver is not None
    asked = driver.provider.submit_batch(str(path_of(llm.uuid)), key=str(llm.uuid), count=llm.count)
    try:
        status = cycle.wait(asked)
    except ProviderError as error:
        _refused(job, llm, error)
        return False
    reach("batch_submitted")
    accept(llm, status)
    return True


def _intend(llm: LLMBatch) -> bool:
    """Store that it is about to be sent: whoever finds it so after a crash looks before sending again."""
    now = timezone.now()
    rows = LLMBatch.objects.filter(pk=llm.pk, status=LLMState.CREATED)
    llm.attempts += 1
    llm.adopted = False
    fields = {
        "adopted": False,
        "submitted_at": now,
        "attempts": llm.attempts,
        "looks": 0,
        "next_at": None,
        "updated_at": now,
    }
    return bool(rows.update(status=LLMState.SUBMITTING, **fields))


def accept(llm: LLMBatch, status: BatchStatus) -> None:
    """Store that the provider has it, and under which id."""
    llm.provider_batch_id, llm.response, llm.status = status.id, dict(status.raw), LLMState.RUNNING
    llm.troubles, llm.last_error, llm.next_at = 0, "", poll_again_at()
    llm.save(
        update_fields=[
            "provider_batch_id", "response", "status", "adopted", "troubles", "last_error", "next_at", "updated_at",
        ]
    )  # fmt: skip
    remove(llm.uuid)


def _refused(job: BatchJob, llm: LLMBatch, error: ProviderError) -> None:
    log.warning("submit_failed", llm_batch=llm.wire_id, kind=error.kind, status=error.status, error=error.message)
    llm.last_error = error.message
    llm.troubles += 1
    if error.kind in MAYBE:
        _store(llm, LLMState.UNKNOWN)
    elif error.kind == "rate_limit":
        llm.next_at = later(llm, error.retry_after)
        _store(llm, LLMState.CREATED)
    elif error.kind in PAUSES:
        _store(llm, LLMState.CREATED)
        pause(job, error.kind, error.message)
    elif error.status == 413 and llm.count > 1:
        halve(llm)
    else:
        _store(llm, LLMState.FAILED)
        remove(llm.uuid)
        fail_items(job, BatchItem.objects.filter(llm_batch=llm), error)


def _store(llm: LLMBatch, status: LLMState) -> None:
    llm.status = status
    llm.ended_at = timezone.now() if status == LLMState.FAILED else None
    llm.save(update_fields=["status", "last_error", "troubles", "next_at", "ended_at", "updated_at"])
