"""The runs of an agent over a websocket, and the events of those that a client subscribes to."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from agents.actions.begin import Wanted, create_run
from agents.events.wake import tell_course
from agents.models import Agent, Run, RunStatus
from lettaweb.lib.db import in_db
from tests.agents import factories as make
from tests.agents.desk import person
from tests.agents.sockets import connected
from tests.agents.test_sockets_runs import finish, said, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def vera() -> User:
    return person("vera", "viewer")


@pytest.fixture
def agent() -> Agent:
    return make.make_agent()


def begin(agent: Agent) -> Run:
    with transaction.atomic():
        run = create_run(make.default_of(agent), Wanted({}))
        run.status, run.epoch = RunStatus.RUNNING, 1
        run.save()
    return run


def end(run: Run) -> None:
    with transaction.atomic():
        finish(run)
        tell_course(run.agent_id)


async def test_it_tells_of_runs_as_they_begin_and_end(vera: User, agent: Agent) -> None:
    other = await in_db(make.make_agent, "other")
    async with connected(f"/ws/agents/{agent.wire_id}/", vera) as reader:
        hello = await reader.frame()
        assert (hello["type"], hello["runs"], hello["waiting"]) == ("hello", [], 0)
        await in_db(begin, other)
        run = await in_db(begin, agent)
        told = await reader.frame()
        assert (told["type"], told["run"]["id"], told["run"]["status"]) == ("run", run.wire_id, "running")
        await in_db(end, run)
        told = await reader.frame()
        assert (told["run"]["id"], told["run"]["status"], told["run"]["stop_reason"]) == (
            run.wire_id,
            "completed",
            "end_turn",
        )


async def test_it_streams_what_one_subscribes_to(vera: User, agent: Agent) -> None:
    run = await in_db(begin, agent)
    await in_db(write, run, "a", "b")
    async with connected(f"/ws/agents/{agent.wire_id}/", vera) as reader:
        assert [one["id"] for one in (await reader.frame())["runs"]] == [run.wire_id]
        await reader.say({"type": "subscribe", "run_id": run.wire_id, "after": 1})
        assert said(await reader.until("events")) == [(2, "b")]
        await in_db(write, run, "c")
        assert said(await reader.until("events")) == [(3, "c")]
        await reader.say({"type": "unsubscribe", "run_id": run.wire_id})
        await reader.say({"type": "ping"})
        await reader.until("pong")
        await in_db(write, run, "d")
        assert await reader.silent()
        await reader.say({"type": "subscribe", "run_id": run.wire_id, "after": 3})
        await in_db(end, run)
        assert (await reader.until("end"))["last"] == 6
        await reader.say({"type": "ping"})
        await reader.until("pong")


async def test_it_follows_by_itself_when_asked_to(vera: User, agent: Agent) -> None:
    async with connected(f"/ws/agents/{agent.wire_id}/?follow=1", vera) as reader:
        await reader.until("hello")
        run = await in_db(begin, agent)
        await in_db(write, run, "a")
        assert said(await reader.until("events")) == [(1, "a")]
        await in_db(end, run)
        assert (await reader.until("end"))["run_id"] == run.wire_id


async def test_it_checks_every_subscription(vera: User, agent: Agent) -> None:
    foreign = await in_db(begin, await in_db(make.make_agent, "other"))
    async with connected(f"/ws/agents/{agent.wire_id}/", vera) as reader:
        await reader.until("hello")
        wanted: list[tuple[dict[str, Any], str]] = [
            ({"run_id": foreign.wire_id}, "unknown"),
            ({"run_id": "run-00000000-0000-4000-8000-000000000000"}, "unknown"),
            ({"run_id": "nonsense"}, "bad_field"),
            ({}, "bad_field"),
            ({"run_id": 7}, "bad_field"),
            ({"run_id": foreign.wire_id, "after": -1}, "bad_field"),
            ({"run_id": foreign.wire_id, "after": True}, "bad_field"),
        ]
        for fields, code in wanted:
            await reader.say({"type": "subscribe", **fields})
            assert (await reader.until("error"))["code"] == code
