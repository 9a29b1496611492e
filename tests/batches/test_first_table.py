"""The rows of the first table: what a batch of memgpt agents stores, sends and shows, wave by wave.

Jobs are made and read by the client's own ``client.batches``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.batches.desk import MODELS, RETHINK, Desk, Json, roles, weather
from tests.batches.sdk import Sdk, SdkDesk
from tests.scripted.answers import text, tool_use

CONTINUES = ["user", "tool", "assistant", "user"]  # newest first
STOPS = ["tool", "assistant", "user"]
BEGUN = {("created", "paused")}
DONE = {("completed", "completed")}


@pytest.fixture(scope="module")
def sdk(letta0_python: Path) -> Iterator[Sdk]:
    started = Sdk(letta0_python)
    yield started
    started.stop()


@pytest.fixture
def desk(desk: Desk, sdk: Sdk, live_server: LiveServer) -> SdkDesk:
    return SdkDesk(desk.provider, sdk, live_server.url)


def descending(messages: Sequence[Mapping[str, Json]]) -> bool:
    times = [message["created_at"] for message in messages]
    return times == sorted(times, reverse=True)


def states(items: Sequence[Mapping[str, Json]]) -> set[tuple[str, str]]:
    return {(item["request_status"], item["step_status"]) for item in items}


def called(item: Mapping[str, Json]) -> list[str]:
    """The item's own copy of what the tool rules know."""
    return list(item["step_state"]["tool_rules_solver"]["tool_call_history"])


def test_it_prepares_and_submits_one_batch(desk: SdkDesk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    shown = desk.job(job)
    assert (shown["id"], shown["status"], shown["callback_url"]) == (job, "running", None)
    assert [found["id"] for found in desk.jobs()] == [job]
    (sent,) = desk.submits
    assert desk.provider.refused == []
    requests = sent.body["requests"]
    assert [request["params"]["model"] for request in requests] == [m.split("/")[1] for m in MODELS.values()]
    for request in requests:
        params = request["params"]
        assert [tool["name"] for tool in params["tools"]] == ["get_weather"]
        assert params["messages"][-1]["role"] == "user"
        last = params["messages"][-1]["content"]
        assert "Hi there" in (last if isinstance(last, str) else last[-1]["text"])
    (wave,) = desk.waves(job)
    assert (wave["llm_provider"], wave["status"], wave["agent_count"]) == ("anthropic", "running", 3)
    items = desk.items(job, llm_batch_id=wave["id"])
    assert [item["agent_id"] for item in items] == agents
    assert states(items) == BEGUN
    assert [(item["step_state"]["step_number"], called(item)) for item in items] == [(0, [])] * 3
    for agent in agents:
        assert desk.roles_stored(agent) == ["system", "assistant", "tool", "user", "user"]
        assert desk.context(agent) == 4
    messages = desk.messages(job)
    assert {tuple(roles(messages, agent)) for agent in agents} == {("user",)}


def test_all_continue(desk: SdkDesk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True), stop_reason="end_turn")
    (first,) = desk.waves(job)
    desk.round()
    old, new = desk.waves(job)
    assert (old["id"], old["status"]) == (first["id"], "completed")
    assert (new["letta_batch_job_id"], new["status"], new["agent_count"]) == (job, "running", 3)
    assert desk.job(job)["status"] == "running"
    fresh, done = (desk.items(job, llm_batch_id=wave["id"]) for wave in (new, old))
    assert (states(fresh), states(done)) == (BEGUN, DONE)
    assert [(item["step_state"]["step_number"], called(item)) for item in fresh] == [(1, ["get_weather"])] * 3
    assert [(item["step_state"]["step_number"], called(item)) for item in done] == [(0, [])] * 3
    assert {(desk.stored(agent), desk.context(agent)) for agent in agents} == {(8, 6)}
    messages = desk.messages(job)
    assert len(messages) == 12
    assert descending(messages)
    assert {tuple(roles(messages, agent)) for agent in agents} == {tuple(CONTINUES)}
    for request in desk.submits[-1].body["requests"]:  # the model sees the question and what came of its call
        said = str(request["params"]["messages"])
        assert (said.count("Hi there"), said.count("The weather in Las Vegas is sunny.")) == (1, 1)
    assert desk.provider.refused == []


def test_some_stop(desk: SdkDesk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True), marker=MODELS["sonnet"].split("/")[1])
    desk.answers(*weather(heartbeat=False))
    desk.round()
    old, new = desk.waves(job)
    assert (old["status"], new["status"], new["agent_count"]) == ("completed", "running", 1)
    (fresh,) = desk.items(job, llm_batch_id=new["id"])
    assert (fresh["agent_id"], fresh["step_state"]["step_number"], called(fresh)) == (agents[0], 1, ["get_weather"])
    assert (states([fresh]), states(desk.items(job, llm_batch_id=old["id"]))) == (BEGUN, DONE)
    assert [desk.context(agent) for agent in agents] == [6, 6, 6]
    messages = desk.messages(job)
    assert len(messages) == 10
    assert descending(messages)
    assert [roles(messages, agent) for agent in agents] == [CONTINUES, STOPS, STOPS]
    assert desk.detail(job)["counts"] == {"done": 2, "in_flight": 1}
    assert desk.provider.refused == []


def test_one_fails(desk: SdkDesk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True))
    before = desk.state_messages(agents[0])
    desk.round({agents[0]: "rate_limit"})
    old, new = desk.waves(job)
    assert (old["status"], new["status"], new["agent_count"]) == ("completed", "running", 2)
    failed, *others = desk.items(job, llm_batch_id=old["id"])
    assert (failed["agent_id"], states([failed]), failed["error"]["type"]) == (
        agents[0],
        {("failed", "paused")},
        "rate_limit",
    )
    assert states(others) == DONE
    assert {item["agent_id"] for item in desk.items(job, llm_batch_id=new["id"])} == set(agents[1:])
    assert desk.state_messages(agents[0]) == before
    assert [desk.context(agent) for agent in agents] == [4, 6, 6]
    messages = desk.messages(job)
    assert len(messages) == 9
    assert descending(messages)
    assert [roles(messages, agent) for agent in agents] == [["user"], CONTINUES, CONTINUES]


def test_a_tool_edits_memory(desk: SdkDesk) -> None:
    agent = desk.agent(desk.tool(RETHINK), memory_blocks=[{"label": "human", "value": "Name: Matt"}])
    job = desk.submitted(agent)
    given = {"new_memory": "banana", "target_block_label": "human", "request_heartbeat": False}
    desk.answers(text("Let me rethink my memory."), tool_use("rethink_memory", given, "tu_1"))
    desk.round()
    blocks = {block["label"]: block["value"] for block in desk.state(agent)["memory"]["blocks"]}
    assert blocks == {"human": "banana"}
    assert desk.job(job)["status"] == "completed"
    desk.submitted(agent)
    assert "banana" in desk.submits[-1].body["requests"][0]["params"]["system"][0]["text"]


def test_the_client_cancels_and_pages(desk: SdkDesk) -> None:
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.answers(text("I was done."))
    desk.cancel(job)
    desk.poll()
    desk.round({agents[0]: "succeeded"}, default="canceled")
    assert desk.job(job)["status"] == "cancelled"
    whole = [message["id"] for message in desk.messages(job)]
    assert len(whole) == 4
    assert [message["id"] for message in desk.messages(job, limit=2, after=whole[1])] == whole[2:]
    assert [message["id"] for message in desk.messages(job, limit=2, before=whole[2])] == whole[:2]
    assert {message["agent_id"] for message in desk.messages(job, agent_id=agents[0])} == {agents[0]}
