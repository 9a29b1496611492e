"""Every run ends within a known time: a model that hangs, an answer that trickles for ever, zombies, slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.scripted.answers import answer, hang, text, tokens
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client, types_of
from tests.survival.kit import WAIT, await_end, follow, wait_until

pytestmark = pytest.mark.server
MakeServer = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def hasty(make_server: MakeServer, scripted_server: ScriptedProvider) -> Iterator[ServerProcess]:
    """A server that waits two seconds for a model, lets a run take seven, has two slots and pings often."""
    server = make_server(
        command="web",
        LETTAWEB_PROVIDER_TIMEOUT="2",
        LETTAWEB_PROVIDER_RETRIES="0",
        LETTAWEB_RUN_SECONDS="7",
        LETTAWEB_MAX_RUNS="2",
        LETTAWEB_PING_SECONDS="0.2",
    )
    with Client(server.url, scripted_server) as first:  # what takes seconds once is not what is timed here
        first.send(first.agent(), "warm up")
    yield server
    server.stop()


@pytest.fixture
def api(hasty: ServerProcess, provider: ScriptedProvider) -> Iterator[Client]:
    with Client(hasty.url, provider) as client:
        yield client


def test_it_fails_a_run_whose_model_hangs(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", hang())
    begun = time.monotonic()
    failed = api.send(agent, "go")
    assert failed.status == 504
    assert time.monotonic() - begun < 15
    (run,) = api.runs(agent)
    assert (run["status"], run["stop_reason"]) == ("failed", "llm_api_error")
    assert api.send(agent, "again").stop == "end_turn"
    assert len(api.provider.generations) == 2, "it was started again"


def test_it_ends_an_answer_that_trickles_for_ever(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(5000), delay=200))
    follower = follow(api, agent, "go")
    follower.join()
    run = api.get(f"/v1/runs/{follower.run}")
    assert (run["status"], run["stop_reason"]) == ("failed", "error")
    errors = [chunk["message"] for chunk in follower.chunks if chunk["message_type"] == "error_message"]
    assert errors == ["The run took too long and was ended."]
    api.provider.await_outcome("gone", timeout=WAIT)
    assert api.send(agent, "again").stop == "end_turn"


def test_it_takes_runs_that_wait_for_a_slot_in_their_order(api: Client) -> None:
    agents = [api.agent() for _ in range(6)]
    api.provider.script("", answer(text("first two"), hold="gate", times=2), answer(text("others"), delay=20, times=0))
    for agent in agents[:2]:
        api.send(agent, "go", path=f"/v1/agents/{agent}/messages/async")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: len(api.provider.generations) == 2)
    for agent in agents[2:]:
        queued = api.send(agent, "go", path=f"/v1/agents/{agent}/messages/async")
        assert queued.body["status"] == "created"
    assert len(api.provider.generations) == 2
    api.provider.release("gate")
    ended = [await_end(api, api.runs(agent)[0]["id"]) for agent in agents]
    assert {run["status"] for run in ended} == {"completed"}
    asked = [api.get("/v1/steps/", agent_id=agent)[0]["id"] for agent in agents]
    assert len(set(asked)) == 6
    over = [run["completed_at"] for run in ended[2:]]
    places = [sorted(over).index(at) for at in over]
    assert all(abs(place - turn) <= 1 for turn, place in enumerate(places)), "two at a time, in their order"


def test_it_pings_while_the_model_is_silent(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(2), first_byte=1000))
    chunks = api.stream(agent, "go")
    pings = [chunk for chunk in chunks if chunk["message_type"] == "ping"]
    assert len(pings) >= 2
    assert {ping["run_id"] for ping in pings} == {chunks[-2]["run_id"]}
    api.provider.script("", answer(tokens(2), first_byte=1000))
    assert "ping" not in types_of(api.stream(agent, "go", include_pings=False))


def test_it_cancels_a_run_that_nobody_drives(api: Client) -> None:
    blockers = [api.agent() for _ in range(2)]
    api.provider.script("", answer(text("busy"), hold="gate", times=2))
    for agent in blockers:
        api.send(agent, "go", path=f"/v1/agents/{agent}/messages/async")
    api.provider.await_held("gate", WAIT)
    agent = api.agent()
    run = api.send(agent, "go", path=f"/v1/agents/{agent}/messages/async").body
    assert run["status"] == "created"
    cancelled = api.call("POST", f"/v1/agents/{agent}/messages/cancel", {})
    assert list(cancelled.body.values()) == ["cancelled"]
    assert api.get(f"/v1/runs/{run['id']}")["status"] == "cancelled"
    api.provider.release("gate")
    assert api.send(agent, "now").stop == "end_turn"
