"""Ready members are asked for: the loop prepares their requests, which go into files, one LLM batch each."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from agents import loop, providers
from agents.context import summary_text
from agents.loop import Ask, Course, Outcome, Summarize, Summarized
from agents.loop.many import read_ahead
from agents.providers.base import ProviderError
from agents.providers.ids import own_names
from batches.drivers import driver_of
from batches.drivers.base import Driver
from batches.models import BatchItem, BatchJob, BatchMember, LLMBatch, LLMState, MemberState
from batches.poll.chunks import Pace
from batches.poll.cycle import Cycle
from batches.poll.places import fail_member, look
from batches.poll.spool import Spool
from lettaweb.lib.faults import reach
from lettaweb.lib.many import update_many

ENOUGH = 1000  # ready members leave without waiting for others
PATIENCE = timedelta(minutes=1)
ASK = frozenset[str]()
PAGE = 200  # members whose courses are read at once
Orders = list[tuple[BatchMember, loop.Order]]
IN_FLIGHT = (LLMState.SUBMITTING, LLMState.UNKNOWN, LLMState.RUNNING, LLMState.DOWNLOADING, LLMState.STEPPING)
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Filling:
    """An LLM batch whose file is being written."""

    llm: LLMBatch
    driver: Driver
    spool: Spool
    count: int = 0

    def takes(self, line: bytes) -> bool:
        full = self.count >= self.driver.most_requests or self.spool.size + len(line) + 1 > self.driver.most_bytes
        return not full or self.count == 0


class Departure:
    """The ready members of a job on their way into files."""

    def __init__(self, cycle: Cycle, job: BatchJob) -> None:
        self.cycle, self.job = cycle, job
        self.open: dict[tuple[str, str], Filling] = {}
        self.full: list[Filling] = []
        self.items: dict[int, BatchItem] = {}
        self.pace = Pace()

    def leave(self) -> list[LLMBatch]:
        """Write the files of all members that are ready now; their LLM batches."""
        after = 0
        while not self.cycle.over:
            members = list(ready(self.job).filter(pk__gt=after).order_by("id")[:PAGE])
            if not members:
                break
            after = members[-1].pk
            ahead = read_ahead([member.run_id for member in members if member.run_id], asking=True)
            self.items = _items(members)
            while members and not self.cycle.over:
                chunk, members = members[: self.pace.size], members[self.pace.size :]
                self._write(self._prepared(chunk, ahead))
        return [self._seal(filling) for filling in [*self.full, *self.open.values()]]

    def _prepared(self, members: Sequence[BatchMember], ahead: dict[int, Course] | None) -> Orders:
        """Members in one transaction; after a bug with one of them each in its own, so that the others go on."""
        try:
            with self.pace.transaction(len(members)):
                orders = look(self.job, [(member, None) for member in members], hold=ASK, ahead=ahead)
            return [(member, orders[member.pk]) for member in members if member.pk in orders]
        except Exception:
            log.exception("members_not_prepared", job=self.job.wire_id, members=len(members))
        if len(members) == 1:
            fail_member(members[0])
            return []
        return [pair for member in members for pair in self._prepared([member], None)]

    def _write(self, orders: Orders) -> None:
        """Put the requests into files. What a crash or a full disk leaves without a file is taken back later."""
        reach("batch_prepared")
        asked = [(member, order) for member, order in orders if isinstance(order, Ask)]
        items = [self.items[member.pk] for member, _ in asked]
        for item, (_, order) in zip(items, asked, strict=True):
            item.llm_batch = self._line(item, order).llm
        with transaction.atomic():
            update_many(items, "llm_batch", "updated_at")
        for member, wish in orders:
            if isinstance(wish, Summarize):
                self._summarize(member, wish)

    def _line(self, item: BatchItem, order: Ask) -> Filling:
        """Write the request of one item; the file that it went into."""
        driver = driver_of(order.provider)
        assert driver is not None
        content = driver.provider.batch_line(item.wire_id, order.request)
        filling = self._filling(driver, order.request.model, content)
        filling.spool.add(content)
        filling.count += 1
        names = [tool.name for tool in order.request.tools]
        if own_names(names):
            BatchItem.objects.filter(pk=item.pk).update(tools=names)
        return filling

    def _filling(self, driver: Driver, model: str, line: bytes) -> Filling:
        key = (driver.name, model if driver.one_model else "")
        found = self.open.get(key)
        if found is not None and not found.takes(line):
            self.full.append(self.open.pop(key))
            found = None
        if found is None:
            llm = LLMBatch.objects.create(uuid=uuid.uuid4(), job=self.job, provider=key[0], model=key[1])
            found = self.open[key] = Filling(llm, driver, Spool(llm.uuid))
        return found

    def _summarize(self, member: BatchMember, order: Summarize) -> None:
        """A request that does not fit: a summary is made in a live call, and the member leaves with the next wave."""
        outcome: Outcome = self.cycle.wait(summarized(order))
        with self.pace.transaction(1):
            look(self.job, [(member, outcome)])

    def _seal(self, filling: Filling) -> LLMBatch:
        filling.spool.close()
        llm = filling.llm
        llm.count = filling.count
        llm.size, llm.digest, llm.status = filling.spool.size, filling.spool.digest, LLMState.CREATED
        llm.save(update_fields=["count", "size", "digest", "status", "updated_at"])
        reach("batch_spooled")
        return llm


async def summarized(order: Summarize) -> Summarized:
    try:
        response = await providers.get(order.provider).complete(order.request)
    except ProviderError as error:
        return Summarized(order, None, error.message)
    text = summary_text(response, clip_chars=order.clip_chars)
    return Summarized(order, text, "" if text else "The model gave no summary")


def ready(job: BatchJob) -> QuerySet[BatchMember]:
    rows = BatchMember.objects.filter(job=job, state=MemberState.READY)
    return rows.only("id", "job", "agent_id", "agent_uuid", "state", "steps", "retries", "turn", "run")


def may_leave(cycle: Cycle, job: BatchJob) -> bool:
    """Whether ready members leave now: enough of them, one waited for long, or nothing else is under way."""
    if job.send_after is not None and job.send_after > timezone.now() and not cycle.by_hand:
        return False
    rows = BatchMember.objects.filter(job=job, state=MemberState.READY)
    oldest = rows.aggregate(oldest=Min("since"))["oldest"]
    if oldest is None:
        return False
    if oldest < timezone.now() - PATIENCE:
        return True
    if not LLMBatch.objects.filter(job=job, local=False, status__in=IN_FLIGHT).exists():
        return True
    return len(rows.values_list("pk")[:ENOUGH]) == ENOUGH


def _items(members: Sequence[BatchMember]) -> dict[int, BatchItem]:
    """The item of each member's next model call."""
    rows = BatchItem.objects.filter(member__in=[member.pk for member in members], llm_batch=None, answered_at=None)
    return {row.member_id: row for row in rows.only("id", "uuid", "member_id").order_by("id")}
