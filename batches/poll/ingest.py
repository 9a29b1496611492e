"""Result files come into the staging table: as raw lines, in any order, as often as it takes, each item once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import transaction

from agents.providers.base import ProviderError
from agents.providers.lines import load_line, text_of
from batches.drivers import driver_of
from batches.models import BatchItem, BatchJob, LLMBatch, LLMState, StagedResult
from batches.poll.cycle import Cycle
from batches.poll.recover import not_ours
from batches.poll.watch import trouble
from lettaweb.lib import ids
from lettaweb.lib.faults import reach

AT_ONCE = 500  # lines per commit
MOST_DOWNLOADS = 2  # a file that lacks results is read once more
SHOWN = 20  # bad lines that the log names
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Tally:
    """What a file held. ``known``: lines of items of this batch; ``foreign``: of others; ``garbled``: line numbers."""

    lines: int = 0
    known: int = 0
    foreign: int = 0
    repeated: int = 0
    garbled: list[int] = field(default_factory=list)


def download(cycle: Cycle, job: BatchJob) -> None:
    """Read the results of every batch of ``job`` that has ended."""
    for llm in cycle.due(LLMBatch.objects.filter(job=job, status=LLMState.DOWNLOADING)):
        if cycle.over:
            break
        while _read(cycle, job, llm) and _lacks_results(llm) and llm.downloads < MOST_DOWNLOADS:
            log.warning("results_missing", llm_batch=llm.wire_id, downloads=llm.downloads)


def _read(cycle: Cycle, job: BatchJob, llm: LLMBatch) -> bool:
    """Stage the whole file; False when it must be tried again later."""
    tally = Tally()
    try:
        cycle_lines(cycle, llm, tally)
    except ProviderError as error:
        trouble(job, llm, error)
        return False
    reach("batch_downloaded")
    if tally.foreign and not tally.known and not_ours(llm):
        return False
    if tally.garbled or tally.foreign or tally.repeated:
        log.warning(
            "odd_results", llm_batch=llm.wire_id, lines=tally.lines, foreign=tally.foreign, repeated=tally.repeated,
            garbled=tally.garbled[:SHOWN],
        )  # fmt: skip
    llm.downloads += 1
    if not _lacks_results(llm) or llm.downloads >= MOST_DOWNLOADS:
        llm.status, llm.troubles, llm.next_at = LLMState.STEPPING, 0, None
    llm.save(update_fields=["status", "downloads", "troubles", "next_at", "updated_at"])
    return True


def cycle_lines(cycle: Cycle, llm: LLMBatch, tally: Tally) -> None:
    """Read the lines of the provider and store them, so many at once."""
    driver = driver_of(llm.provider)
    assert driver is not None
    lines = driver.provider.batch_results(llm.provider_batch_id)
    try:
        while found := cycle.wait(_next(lines, AT_ONCE)):
            _stage(llm, found, tally)
            reach("batch_staged")
            cycle.lease.check()
    finally:
        cycle.wait(_close(lines))


async def _next(lines: AsyncIterator[bytes], count: int) -> list[bytes]:
    found: list[bytes] = []
    async for line in lines:
        found.append(line)
        if len(found) == count:
            break
    return found


async def _close(lines: Any) -> None:
    async with aclosing(lines):
        pass


def _stage(llm: LLMBatch, lines: Sequence[bytes], tally: Tally) -> None:
    named = _named(lines, tally)
    rows = BatchItem.objects.filter(llm_batch=llm, uuid__in=named)
    known = {uuid: (pk, answered) for pk, uuid, answered in rows.values_list("pk", "uuid", "answered_at")}
    tally.known += len(known)
    tally.foreign += len(named.keys() - known.keys())
    open_ = [(pk, named[uuid]) for uuid, (pk, answered) in known.items() if answered is None]
    with transaction.atomic():
        StagedResult.objects.bulk_create(
            [StagedResult(llm_batch=llm, item_id=pk, line=line) for pk, line in open_], ignore_conflicts=True
        )


def _named(lines: Sequence[bytes], tally: Tally) -> dict[Any, bytes]:
    """The lines by the item that they name; the first of several for one item counts."""
    named: dict[Any, bytes] = {}
    for line in lines:
        tally.lines += 1
        if not line.strip():
            continue
        uuid = ids.find(BatchItem.PREFIX, text_of((load_line(line) or {}).get("custom_id")))
        if uuid is None:
            tally.garbled.append(tally.lines)
        elif uuid in named:
            tally.repeated += 1
        else:
            named[uuid] = line
    return named


def _lacks_results(llm: LLMBatch) -> bool:
    rows = BatchItem.objects.filter(llm_batch=llm, answered_at=None)
    return rows.exclude(pk__in=StagedResult.objects.filter(llm_batch=llm).values("item")).exists()
