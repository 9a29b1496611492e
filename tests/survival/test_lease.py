"""Whose runs are whose: dead processes, takeovers, runs that nobody drives, and the end of those that never end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents import loop
from agents.events import Fence, page
from agents.events.kinds import Batch, StepHead
from agents.events.log import GAP
from agents.executor import lease, process
from agents.executor.watch import Watch
from agents.loop.crash import TOO_LATE, fail_run
from agents.loop.prepare import MOST_ATTEMPTS
from agents.models import Conversation, Message, Process, Run, RunStatus, Step, StepStatus
from lettaweb.checks import check_queue
from tests.agents.factories import default_of, make_agent, make_message, make_run, make_step, write_deltas

watch = import_module("agents.executor.watch")  # the package has an object of that name
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _me() -> Iterator[None]:
    process.enter("test")
    yield
    process.leave()


def other(*, silent: float = 0, **fields: Any) -> Process:
    """Another process, whose last beat is ``silent`` seconds old; of another machine unless ``fields`` say more."""
    then = timezone.now() - timedelta(seconds=silent)
    given = {"kind": "web", "host": "elsewhere", "boot_id": process.place(), "pid": os.getppid(), **fields}
    return Process.objects.create(started_at=then, beat_at=then, **given)


def running(owner: Process | None, **fields: Any) -> Run:
    conversation = default_of(make_agent(uuid.uuid4().hex))
    return make_run(conversation, RunStatus.RUNNING, owner=owner, epoch=1, **fields)


def free() -> list[int]:
    return [found.run_id for found in lease.look().free]


DEAD: dict[str, dict[str, Any]] = {
    "silent for longer than the lease": {"silent": 60},
    "its number is gone": {"pid": 2**22 + 1},
    "its number is ours": {"pid": os.getpid()},
}


on_a_file = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="only a database file is sure to share the fate of its machine"
)


@pytest.mark.parametrize("fields", DEAD.values(), ids=DEAD)
def test_it_takes_over_from_the_dead(fields: dict[str, Any]) -> None:
    dead = other(**fields)
    run = running(dead)
    assert free() == [run.pk]
    (fence,) = lease.claim(lease.look().free)
    assert fence == Fence(run.pk, 2)
    assert not write_deltas(Fence(run.pk, 1), Batch(1, [["a", 0, "late"]]))
    assert list(lease.look().mine.values()) == [fence]
    lease.bury(lease.look().gone)
    assert not Process.objects.filter(pk=dead.pk).exists()


@on_a_file
def test_it_takes_over_from_a_machine_that_was_started_anew() -> None:
    run = running(other(boot_id="another-boot:1"))
    assert free() == [run.pk]


def test_it_leaves_the_living_alone() -> None:
    running(other())
    running(other(boot_id=process.place().partition(":")[0] + ":77", pid=2**22 + 1))  # another container's numbers
    assert free() == []
    assert lease.look().gone == []


def test_it_keeps_the_row_of_the_dead_while_they_own_something() -> None:
    dead = other(silent=60)
    running(dead)
    assert lease.look().gone == []


def test_it_takes_a_run_once() -> None:
    run = make_run(default_of(make_agent()), RunStatus.CREATED)
    found = lease.look().free
    assert [len(list(lease.claim(found))) for _ in range(2)] == [1, 0]
    run.refresh_from_db()
    assert (run.epoch, run.owner_id, run.status) == (1, process.process_id(), RunStatus.RUNNING)


def test_it_takes_the_oldest_first() -> None:
    runs = [make_run(default_of(make_agent(str(n))), RunStatus.CREATED).pk for n in range(4)]
    assert free() == runs


def test_it_does_not_touch_runs_of_batches() -> None:
    make_run(default_of(make_agent()), RunStatus.CREATED, driver="batch")
    assert free() == []


def test_it_comes_back_after_it_was_held_for_dead() -> None:
    run = running(Process.objects.get(pk=process.process_id()))
    Process.objects.filter(pk=process.process_id()).delete()
    assert not process.beat()
    assert process.beat()
    assert lease.look().mine == {}  # what it had is anybody's
    assert free() == [run.pk]


def test_it_outlives_servers_before_it() -> None:
    run = running(other())
    lease.outlive("web")
    assert free() == [run.pk]


def test_it_takes_a_run_of_its_own_again_that_nobody_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was to start it had a mistake in between: the run must not stay "running" for ever."""
    run, around = running(Process.objects.get(pk=process.process_id())), Watch()
    assert around._strays(lease.look()) == []  # its task may be about to start
    monkeypatch.setattr(watch, "STRAY", 0.0)
    found = around._strays(lease.look())
    assert [(one.run_id, one.epoch) for one in found] == [(run.pk, 1)]
    assert list(lease.claim(found)) == [Fence(run.pk, 2)]


def test_it_refuses_a_queue_that_would_work_on_a_task_twice(settings: Any) -> None:
    assert check_queue() == []
    assert settings.Q_CLUSTER["max_attempts"] == 1
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "retry": settings.Q_CLUSTER["timeout"]}
    assert [error.id for error in check_queue()] == ["lettaweb.E004"]


def test_it_gives_back_only_its_own() -> None:
    mine, others = Process.objects.get(pk=process.process_id()), other()
    runs = [running(mine), running(others)]
    for run in runs:
        lease.release(Fence(run.pk, 1))
        lease.release(Fence(run.pk, 7))
    assert [Run.objects.get(pk=run.pk).owner_id for run in runs] == [None, others.pk]


def test_it_says_which_runs_take_too_long(settings: Any) -> None:
    me = Process.objects.get(pk=process.process_id())
    old = timezone.now() - timedelta(seconds=settings.LETTAWEB_RUN_SECONDS + 1)
    late, fresh = running(me, started_at=old), running(me, started_at=timezone.now())
    assert lease.look().late == {late.pk}
    fail_run(Fence(late.pk, 1), TOO_LATE)
    late.refresh_from_db()
    assert (late.status, late.stop_reason) == (RunStatus.FAILED, "error")
    assert late.error is not None
    assert "too long" in late.error["message"]
    assert [event[0] for batch in page(late.pk, 0) for event in batch.events] == ["stop", "error", "usage"]
    assert list(lease.look().mine) == [fresh.pk]


def test_it_ends_a_run_even_when_its_calls_cannot_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = running(None)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug in the bug's own handling")

    monkeypatch.setattr("agents.loop.crash.close_calls", broken)
    fail_run(Fence(run.pk, 1))
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert [event[0] for batch in page(run.pk, 0) for event in batch.events] == ["stop", "error", "usage"]


# --- power loss ------------------------------------------------------------------------------------------


def half_said(owner: Process) -> tuple[Run, Step]:
    """A run whose open answer has two deltas in the log."""
    run = running(owner, options={"stream_tokens": True})
    make_message(run.conversation, "hi", run=run)
    step = make_step(run, status=StepStatus.PENDING, first_seq=1)
    head = StepHead(str(step.message_uuid), step.wire_id, "2026-03-01T12:00:00+00:00")
    assert write_deltas(Fence(run.pk, 1), Batch(1, [["a", 0, "one "], ["a", 0, "two "]], head))
    return run, step


@on_a_file
def test_it_never_uses_a_number_again_after_a_power_loss() -> None:
    run, step = half_said(other(boot_id="another-boot:1"))
    seen = step.message_uuid
    (fence,) = lease.claim(lease.look().free)
    (gap,) = page(run.pk, 2)
    assert gap.last == 2 + GAP
    assert gap.events == [["ping", {"superseded_message_ids": [f"message-{seen}"]}]]
    # Whoever had seen numbers that the log does not hold any more goes on with the ping.
    assert page(run.pk, 2 + GAP // 2)[0].events == gap.events
    order = loop.advance(fence).order
    assert isinstance(order, loop.Ask)
    assert order.shown == ()
    assert order.message != seen
    assert order.last_seq == gap.last
    step.refresh_from_db()
    assert step.superseded == [str(seen)]


def test_it_repeats_what_was_shown_after_an_ordinary_death() -> None:
    _, step = half_said(other(silent=60))
    (fence,) = lease.claim(lease.look().free)
    order = loop.advance(fence).order
    assert isinstance(order, loop.Ask)
    assert order.message == step.message_uuid
    assert order.shown == (("a", "one "), ("a", "two "))


def test_it_gives_up_an_answer_that_brings_the_server_down() -> None:
    run, step = half_said(other(silent=60))
    Step.objects.filter(pk=step.pk).update(attempt=MOST_ATTEMPTS)
    (fence,) = lease.claim(lease.look().free)
    assert isinstance(loop.advance(fence).order, loop.Done)
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == (RunStatus.FAILED, "error")
    assert Conversation.objects.get(pk=run.conversation_id).runs.filter(status="running").count() == 0
    assert Message.objects.filter(conversation=run.conversation).count() == 1
