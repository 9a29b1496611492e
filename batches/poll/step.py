"""Staged results reach the loop: every answer once, in short transactions, each item's facts with its member's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from agents.loop import Answered, Course
from agents.loop.many import read_ahead
from agents.models import Agent
from agents.providers.base import BatchResult, ModelResponse, ProviderError, Usage
from batches.drivers import driver_of
from batches.models import (
    BatchItem,
    BatchJob,
    BatchMember,
    LLMBatch,
    LLMState,
    MemberState,
    RequestStatus,
    StagedResult,
    StepState,
)
from batches.poll.again import take_back
from batches.poll.chunks import Pace
from batches.poll.cycle import Cycle
from batches.poll.fail import fail, fail_items
from batches.poll.money import cost_of
from batches.poll.pause import PAUSES, pause
from batches.poll.places import INTERNAL, fail_member, look
from lettaweb.lib.faults import reach
from lettaweb.lib.many import update_many
from lettaweb.lib.transient import passes

MISSING = ProviderError("invalid_response", "The provider gave no result for this request", detail="missing_result")
PAGE = 200  # results that are read at once
How = tuple[Pace, "dict[int, Course] | None"]
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Read:
    """A staged line, read. ``result`` None: it cannot be used."""

    item: BatchItem
    result: BatchResult | None

    @property
    def response(self) -> ModelResponse | None:
        return self.result.response if self.result else None

    @property
    def error(self) -> ProviderError:
        """Why there is no answer; its detail says how the vendor called it."""
        if self.result is None or self.result.error is None:
            return MISSING
        error = self.result.error
        if self.result.outcome in ("expired", "canceled"):
            return ProviderError(error.kind, error.message, detail=self.result.outcome)
        return error


def step(cycle: Cycle, job: BatchJob) -> None:
    """Step every batch of ``job`` whose results are here."""
    for llm in LLMBatch.objects.filter(job=job, status=LLMState.STEPPING).order_by("id"):
        if cycle.over or not _step(cycle, job, llm):
            break
        fail_items(job, BatchItem.objects.filter(llm_batch=llm), MISSING)
        reach("batch_stepped")
        now = timezone.now()
        LLMBatch.objects.filter(pk=llm.pk).update(status=LLMState.COMPLETED, ended_at=now, updated_at=now)


def _step(cycle: Cycle, job: BatchJob, llm: LLMBatch) -> bool:
    """Step the staged results; False when the time was over before the last one."""
    pace = Pace()
    while rows := list(_staged(llm).order_by("id")[:PAGE]):
        read = [_read(llm, row) for row in rows]
        ahead = _courses(read)
        while read:
            if cycle.over:
                return False
            chunk, read = read[: pace.size], read[pace.size :]
            _absorb_carefully(job, llm, chunk, (pace, ahead))
            reach("batch_chunk_stepped")
    return True


def _absorb_carefully(job: BatchJob, llm: LLMBatch, read: Sequence[Read], how: How) -> None:
    """Results in one transaction; after a bug with one of them each in its own, so that the others go on."""
    try:
        _absorb(job, llm, read, how)
    except Exception:
        log.exception("chunk_not_stepped", llm_batch=llm.wire_id, items=len(read))
        # Read anew: what failed had changed the rows in memory.
        for row in _staged(llm).filter(item__in=[one.item.pk for one in read]).order_by("id"):
            _absorb_alone(job, llm, _read(llm, row), how[0])


def _staged(llm: LLMBatch) -> QuerySet[StagedResult]:
    rows = StagedResult.objects.filter(llm_batch=llm).select_related("item__member")
    return rows.defer("item__step_state", "item__error", "item__member__request", "item__member__error")


def _read(llm: LLMBatch, row: StagedResult) -> Read:
    driver = driver_of(llm.provider)
    assert driver is not None
    return Read(row.item, driver.provider.read_result(bytes(row.line), row.item.tools))


def _absorb(job: BatchJob, llm: LLMBatch, read: Sequence[Read], how: How) -> None:
    pace, ahead = how
    blocked = next((one.error for one in read if one.response is None and one.error.kind in PAUSES), None)
    if blocked is not None:
        pause(job, blocked.kind, blocked.message)
    back = [one for one in read if one.response is None and one.error.kind in PAUSES and _goes_on(job, one)]
    failed = [one for one in read if one.response is None and one not in back]
    with pace.transaction(len(read)):
        _answered(job, llm, [one for one in read if one.response is not None], ahead)
        fail(job, [(one.item, one.error) for one in failed])
        take_back([one.item.pk for one in back])
        drop_staged([one.item.pk for one in read])
        reach("batch_chunk")


def drop_staged(items: Sequence[int]) -> None:
    """The results were stepped; nothing refers to their rows."""
    with connection.cursor() as cursor:
        cursor.executemany(_DROP, [(item,) for item in items])


_DROP = "DELETE FROM batches_stagedresult WHERE item_id = %s"


def _goes_on(job: BatchJob, one: Read) -> bool:
    return job.cancelled_at is None and one.item.member.state == MemberState.IN_FLIGHT


def _absorb_alone(job: BatchJob, llm: LLMBatch, one: Read, pace: Pace) -> None:
    """One result in a transaction of its own: a bug with one of them must not stop the others."""
    try:
        _absorb(job, llm, [one], (pace, None))
    except Exception as error:
        if passes(error):
            raise  # nobody's mistake: the next poll goes on with it
        log.exception("item_not_stepped", item=one.item.wire_id)
        fail_member(one.item.member)
        with pace.transaction(1):
            BatchItem.objects.filter(pk=one.item.pk).update(
                request_status=RequestStatus.FAILED, error=INTERNAL, answered_at=timezone.now()
            )
            drop_staged([one.item.pk])


def _answered(job: BatchJob, llm: LLMBatch, read: Sequence[Read], ahead: dict[int, Course] | None) -> None:
    """Tell the loop the answers, and note on items and job what they took."""
    if not read:
        return
    courses = _courses(read) if ahead is None else ahead
    open_ = [one for one in read if one.item.member.state == MemberState.IN_FLIGHT]
    wanted = [
        (one.item.member, Answered(_step_of(one.item.member, courses), one.response))
        for one in open_
        if one.response is not None
    ]
    models = _models(llm, read)
    now = timezone.now()
    for one in read:
        item, response = one.item, one.response
        assert response is not None
        item.request_status, item.step_status = RequestStatus.COMPLETED, StepState.COMPLETED
        item.answered_at = item.updated_at = now
        note_usage(item, llm.provider, models.get(item.agent_uuid, ""), response.usage)
    update_many([one.item for one in read], *ITEM_FIELDS)
    add_usage(job, [one.item for one in read])
    look(job, wanted, ahead=courses)


def _courses(read: Sequence[Read]) -> dict[int, Course]:
    return read_ahead([one.item.member.run_id for one in read if one.item.member.run_id], answered=True)


def _step_of(member: BatchMember, courses: Mapping[int, Course]) -> int:
    """The step of a member's run that waits for its answer."""
    course = courses.get(member.run_id or 0)
    return course.known.step.pk if course and course.known.step else 0


ITEM_FIELDS = (
    "request_status", "step_status", "answered_at", "updated_at", "input_tokens", "output_tokens", "cached_tokens",
    "cache_write_tokens", "reasoning_tokens", "cost", "unpriced",
)  # fmt: skip


def _models(llm: LLMBatch, read: Sequence[Read]) -> dict[object, str]:
    """The model of each agent, where prices may depend on it."""
    if llm.model or not settings.LETTAWEB_PRICES:
        return dict.fromkeys((one.item.agent_uuid for one in read), llm.model)
    rows = Agent.objects.filter(uuid__in=[one.item.agent_uuid for one in read]).values_list("uuid", "model")
    return {uuid: model.partition("/")[2] for uuid, model in rows}


def note_usage(item: BatchItem, provider: str, model: str, usage: Usage, *, batch: bool = True) -> None:
    """What a call took and what it cost, on its item."""
    item.input_tokens, item.output_tokens, item.cached_tokens = usage.input, usage.output, usage.cached
    item.cache_write_tokens, item.reasoning_tokens = usage.cache_write, usage.reasoning
    cost = cost_of(provider, model, usage, batch=batch)
    item.cost, item.unpriced = (Decimal(0), 1) if cost is None else (cost, 0)


SUMMED = (
    "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "cost", "unpriced",
)  # fmt: skip
_ADD = f"UPDATE batches_batchjob SET {', '.join(f'{name} = {name} + %s' for name in SUMMED)} WHERE id = %s"  # noqa: S608


def add_usage(job: BatchJob, items: Sequence[BatchItem]) -> None:
    """Add what items took to their job."""
    sums = [sum((getattr(item, name) for item in items), start=Decimal(0) if name == "cost" else 0) for name in SUMMED]
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [*sums, job.pk])
