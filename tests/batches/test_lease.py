"""One poller at a time, whoever dies; new work is never overlooked; the ticks of the queue."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from django_q.models import OrmQ

from agents.models import ToolCall
from batches import tasks
from batches.models import BatchJob, BatchMember, PollerLease
from batches.poll import lease, run, wake
from lettaweb.lib import drain
from tests.batches.desk import INIT, Desk, weather
from tests.scripted.answers import fault, text


def test_only_one_polls(desk: Desk) -> None:
    with lease.hold() as first:
        assert first is not None
        with lease.hold() as second:
            assert second is None
        assert run(1.0) is False
    with lease.hold() as third:
        assert third is not None


def test_two_threads_at_once_send_one_batch(desk: Desk) -> None:
    desk.create(*desk.plain(3))
    barrier = threading.Barrier(2)

    def poll() -> None:
        barrier.wait()
        run(5.0)
        connection.close()

    threads = [threading.Thread(target=poll) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desk.submits) == 1
    assert len(desk.provider.batches) == 1


def test_a_dead_pollers_lease_is_free_at_once(desk: Desk) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with lease.hold() as held:
        assert held is not None
        PollerLease.objects.update(pid=dead.pid)
        with lease.hold() as next_one:
            assert next_one is not None


@pytest.mark.parametrize(("age", "free"), [(5, False), (31, True)])
def test_a_lease_of_another_machine_ends_with_its_beat(desk: Desk, age: int, free: bool) -> None:
    with lease.hold() as held:
        assert held is not None
        PollerLease.objects.update(host="elsewhere", beat_at=timezone.now() - timedelta(seconds=age))
        with lease.hold() as next_one:
            assert (next_one is not None) is free


def test_who_lost_the_lease_stops(desk: Desk) -> None:
    with lease.hold() as held:
        assert held is not None
        held._lost.set()
        with pytest.raises(lease.LeaseLost):
            held.check()


def test_new_work_wakes_the_queue_once(desk: Desk) -> None:
    OrmQ.objects.all().delete()
    PollerLease.objects.update(wanted=False)
    for agent in desk.plain(3):
        desk.create(agent)
    assert OrmQ.objects.count() == 1
    tasks.poll_now()
    assert BatchJob.objects.filter(phase="waiting_provider").count() == 3
    wake()
    assert OrmQ.objects.count() == 2


def test_work_that_comes_during_a_poll_is_done_by_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, other = desk.plain(2)
    desk.create(agent)
    from batches.poll import close as before

    def close(job: Any) -> bool:
        if BatchJob.objects.count() == 1:
            desk.create(other)
        return before(job)

    monkeypatch.setattr("batches.poll.close", close)
    run(10.0)
    assert len(desk.submits) == 2


def test_a_tick_polls_and_polls_again(desk: Desk, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.LETTAWEB_BATCH_POLL_SECONDS = 20
    slept: list[float] = []
    now = [1000.0]

    def rest(seconds: float) -> bool:
        slept.append(seconds)
        now[0] += seconds
        return False

    monkeypatch.setattr("batches.tasks.drain.rest", rest)
    tasks.poll()
    assert slept == []  # nothing runs: nothing to wait for
    desk.create(*desk.plain())
    monkeypatch.setattr("batches.tasks.time.monotonic", lambda: now[0])
    tasks.poll()
    assert slept == [20.0, 20.0]


def test_a_tick_does_not_sleep_into_a_drain(desk: Desk, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.LETTAWEB_BATCH_POLL_SECONDS = 20
    monkeypatch.setattr(drain, "_shared", None)
    monkeypatch.setattr(drain, "_draining", False)
    drain.share()
    desk.submitted(*desk.plain())
    polled = threading.Event()
    monkeypatch.setattr("batches.tasks.poller.run", lambda _seconds: polled.set())

    def tick() -> None:
        tasks.poll()
        connection.close()

    ticking = threading.Thread(target=tick)
    ticking.start()
    assert polled.wait(10)
    drain.begin()
    ticking.join(10)
    assert not ticking.is_alive()


def test_a_poll_begins_nothing_new_in_a_drain(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "_draining", True)
    desk.create(*desk.plain())
    run(10.0)
    assert desk.submits == []
    monkeypatch.setattr(drain, "_draining", False)
    run(10.0)
    assert len(desk.submits) == 1


def test_one_jobs_bug_does_not_stop_the_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (desk.submitted(agent) for agent in desk.plain(2))
    desk.answers(text("Yes."))
    desk.end(number=0)
    desk.end(number=1)
    from batches.poll import watch as before

    def watch(cycle: Any, job: BatchJob) -> None:
        if job.wire_id == first:
            raise RuntimeError("a bug")
        before(cycle, job)

    monkeypatch.setattr("batches.poll.watch", watch)
    desk.poll()
    assert [desk.job(job)["status"] for job in (first, second)] == ["running", "completed"]


def test_one_members_bug_does_not_stop_the_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["agents.loop.absorb"]
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.answers(text("Yes."))
    before: Any = vars(module)["_store"]

    def store(course: Any, *args: Any) -> Any:
        if course.agent.wire_id == agents[1]:
            raise RuntimeError("a bug")
        return before(course, *args)

    monkeypatch.setitem(vars(module), "_store", store)
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 2, "failed": 1}
    assert desk.job(job)["status"] == "completed"


@pytest.mark.parametrize("times", [1, 2])
def test_a_database_that_is_busy_is_no_members_fault(desk: Desk, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Whether all results of a chunk meet it, or one of them when they are stepped alone: the next poll goes on."""
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.answers(text("Yes."))
    tries = busy(monkeypatch, sys.modules["agents.loop.absorb"], "_store", times)
    desk.round()
    desk.poll()
    assert next(tries) > times
    assert desk.detail(job)["counts"] == {"done": 3}
    assert [desk.roles_stored(agent) for agent in agents] == [["system", "user", "assistant"]] * 3


@pytest.mark.parametrize("when", [1, 2])
def test_results_of_tools_wait_for_a_database_that_is_busy(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """``when``: as the calls are claimed, and as what they gave is told. Each runs once, and every step counts once."""
    job = desk.submitted(desk.agent(desk.tool(), tool_rules=[INIT]))
    desk.answers(*weather(heartbeat=True))
    tries = busy(monkeypatch, sys.modules["batches.poll.act"], "look", 2, after=when - 1)
    desk.round()
    assert next(tries) == 4
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    assert [(call.state, call.outcome) for call in ToolCall.objects.all()] == [("done", "ran")]
    assert [item["step_state"]["step_number"] for item in desk.items(job)] == [0, 1]
    assert BatchMember.objects.get().steps == 2


def busy(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, times: int, *, after: int = 0) -> Iterator[int]:
    """Let a function of ``module`` do its work and then meet a busy database, ``times`` times; counts the calls."""
    before, calls = vars(module)[name], count()

    def met(*args: Any, **options: Any) -> Any:
        found = before(*args, **options)
        if after <= next(calls) < after + times:
            raise OperationalError("database is locked")
        return found

    monkeypatch.setitem(vars(module), name, met)
    return calls


def test_a_job_whose_creation_was_interrupted_fails(desk: Desk) -> None:
    old = BatchJob.objects.create()
    BatchJob.objects.update(created_at=timezone.now() - timedelta(minutes=20))
    desk.poll()
    assert desk.job(old.wire_id)["status"] == "failed"


def test_nothing_is_asked_before_it_is_due(desk: Desk) -> None:
    desk.provider.script_route("GET /v1/messages/batches/*", fault("rate_limit", retry_after=200))
    desk.submitted(*desk.plain())
    run(2.0)
    looks = [entry for entry in desk.provider.requests if entry.method == "GET"]
    assert looks == []  # sent a moment ago
    desk.poll()
    run(2.0)
    assert len([entry for entry in desk.provider.requests if entry.method == "GET"]) == 1
