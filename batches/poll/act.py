"""The tools of a batch: claimed one by one just before they run, in this process, outside any transaction."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import count

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from agents import loop
from agents.events import Fence
from agents.loop import Act, CallToRun, Lost, Outcome, Ran
from batches.models import BatchJob, BatchMember, MemberState
from batches.poll.cycle import Cycle
from batches.poll.places import fail_member, look
from lettaweb.lib.faults import reach
from lettaweb.lib.transient import outlasting, passes
from tools import runner, sandbox

BEFORE_ASK = frozenset({"ask"})
BEFORE_ANYTHING = frozenset({"act", "ask"})
PATIENCE = 30.0  # seconds that results of tools wait for a database that is away
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Acting:
    """A member whose calls run; ``left`` of them have no result yet."""

    member: BatchMember
    left: int


class Acts:
    """The tools of one job that run at the same time, at most as many as there are slots."""

    def __init__(self, cycle: Cycle, job: BatchJob) -> None:
        self.cycle, self.job = cycle, job
        self.slots = int(settings.LETTAWEB_TOOL_SLOTS)
        self.running: dict[Future[Ran], Acting] = {}
        self.after = 0
        self.next: deque[BatchMember] = deque()

    def run(self) -> None:
        """Run the calls of all members that have some, as far as the time allows."""
        if not _acting(self.job).exists():
            return
        sandbox.tier()  # started here: its processes live as long as the thread that forked them
        with ThreadPoolExecutor(self.slots, thread_name_prefix="batch-tool") as threads:
            while self._start(threads) or self.running:
                self._collect(threads)

    def _start(self, threads: ThreadPoolExecutor) -> bool:
        """Claim the calls of further members while there are free slots; whether any were."""
        claimed = False
        while len(self.running) < self.slots and self.cycle.may_act:
            member = self._member()
            if member is None:
                break
            claimed = True
            self._go(threads, member, None)
        return claimed

    def _member(self) -> BatchMember | None:
        if not self.next:
            rows = _acting(self.job).filter(pk__gt=self.after).select_related("run").order_by("id")[:100]
            self.next.extend(rows)
            self.after = self.next[-1].pk if self.next else self.after
        return self.next.popleft() if self.next else None

    def _go(self, threads: ThreadPoolExecutor, member: BatchMember, outcome: Outcome) -> None:
        """Tell the loop, and start what it claims."""
        order = self._look(member, outcome)
        if isinstance(order, Act):
            reach("batch_claimed")
            acting = Acting(member, len(order.calls))
            for call in order.calls:
                self.running[threads.submit(run_call, call)] = acting

    def _look(self, member: BatchMember, outcome: Outcome) -> loop.Order | None:
        hold = BEFORE_ASK if self.cycle.may_act else BEFORE_ANYTHING
        tries = count()

        def told() -> loop.Order | None:
            if next(tries):
                member.refresh_from_db()  # what failed had changed it in memory
            with transaction.atomic():
                return look(self.job, [(member, outcome)], hold=hold).get(member.pk)

        try:
            return outlasting(told, PATIENCE)
        except Exception as error:
            if passes(error):
                raise
            log.exception("member_failed", job=self.job.wire_id, member=member.pk)
            fail_member(member)
            return None

    def _collect(self, threads: ThreadPoolExecutor) -> None:
        """Store the results that are here; the last one of a set tells the loop."""
        if not self.running:
            return
        done, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in done:
            acting = self.running.pop(future)
            acting.left -= 1
            ran = future.result()
            reach("batch_ran")
            if acting.left == 0:
                self._go(threads, acting.member, ran)
            else:
                self._store(acting.member, ran)

    def _store(self, member: BatchMember, ran: Ran) -> None:
        try:
            assert member.run is not None
            fence = Fence(member.run.pk, member.run.epoch)
            outlasting(partial(loop.store, fence, ran), PATIENCE)
        except Lost:
            log.info("run_not_ours", run=member.run_id)


def act(cycle: Cycle, job: BatchJob) -> None:
    """Run the tools that members of ``job`` wait for."""
    Acts(cycle, job).run()


def _acting(job: BatchJob) -> QuerySet[BatchMember]:
    return BatchMember.objects.filter(job=job, state=MemberState.ACTING)


def run_call(call: CallToRun) -> Ran:
    """Run one claimed call and wait for it."""
    return Ran(call.pk, runner.run_blocking(call.code, call.for_sandbox()), call.block_versions)
