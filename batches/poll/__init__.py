"""Jobs brought forward: the loop's verbs with a provider's batch in place of ask.

One cycle reads what has ended, steps it, runs tools, and sends what is ready. Everything that it knows is on rows:
it may stop anywhere, and the next one goes on.
"""

from __future__ import annotations

import time

import structlog

from batches.models import BatchJob, BatchMember, JobStatus, MemberState
from batches.poll import lease, local
from batches.poll.act import act
from batches.poll.begin import begin
from batches.poll.cancel import drop
from batches.poll.close import close, close_unmade
from batches.poll.cycle import Cycle
from batches.poll.depart import Departure, may_leave
from batches.poll.ingest import download
from batches.poll.local import follow
from batches.poll.pull import look_after_parked, pull
from batches.poll.recover import recover, take_over
from batches.poll.step import step
from batches.poll.submit import submit
from batches.poll.watch import watch
from batches.poll.wish import wake, wake_anew

LOCAL_PAUSE = 0.3  # seconds between two looks at live runs
WAVE = 10_000  # members that begin before the first of them leave
log = structlog.get_logger(__name__)

__all__ = ["cycle", "run", "wake"]


def cycle(held: lease.Held, *, seconds: float = 45.0, by_hand: bool = False) -> None:
    """One look at every open job. ``by_hand``: also at what is due only later."""
    lease.take_wish()
    with Cycle(held, seconds=seconds, by_hand=by_hand) as current:
        take_over()
        pull(current)
        for job in BatchJob.objects.filter(status=JobStatus.RUNNING).order_by("id"):
            if current.over:
                break
            try:
                advance(current, job)
            except lease.LeaseLost:
                raise
            except Exception:
                log.exception("job_not_advanced", job=job.wire_id)
    close_unmade()


def advance(current: Cycle, job: BatchJob) -> None:
    """Everything that can be done for one job now."""
    if job.cancelled_at is not None:
        drop(current, job)
    recover(current, job)
    watch(current, job)
    download(current, job)
    step(current, job)
    look_after_parked(job)
    if _goes_on(job):
        act(current, job)
    if _goes_on(job):
        send(current, job)
    follow(current, job)
    close(job)


def _goes_on(job: BatchJob) -> bool:
    """Whether nobody cancelled the job meanwhile; sees who paused it."""
    job.refresh_from_db(fields=["cancelled_at", "paused_at", "send_after"])
    return job.cancelled_at is None


def send(current: Cycle, job: BatchJob) -> None:
    """Send what is ready, wave after wave."""
    while job.paused_at is None and not current.over:
        begun = begin(current, job, most=WAVE)
        left = Departure(current, job).leave() if may_leave(current, job) else []
        submit(current, job)
        if not begun and not left:
            break


def run(seconds: float) -> bool:
    """Cycles for at most ``seconds``, until nothing can be done at once; False when somebody else polls.

    Live runs are followed closely; whatever was wished for meanwhile is dealt with before this returns.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with lease.hold() as held:
            if held is None:
                return False
            cycle(held, seconds=left)
        # The wish is looked at after the lease is given back: who could not get it had wished before.
        if lease.wished():
            continue
        if unfinished():
            break
        if not local.under_way() or time.monotonic() + LOCAL_PAUSE > end:
            return True
        time.sleep(LOCAL_PAUSE)
    wake_anew()
    return True


def unfinished() -> bool:
    """Whether tools are left that there was no time to start."""
    return BatchMember.objects.filter(job__status=JobStatus.RUNNING, state=MemberState.ACTING).exists()
