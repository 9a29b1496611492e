"""The rows of the first table: what a batch of memgpt agents stores, sends and shows, wave by wave."""

from __future__ import annotations

from typing import Any

from tests.batches.desk import MODELS, RETHINK, Desk, roles, weather

CONTINUES = ["user", "tool", "assistant", "user"]  # newest first
STOPS = ["tool", "assistant", "user"]


def descending(messages: list[dict[str, Any]]) -> bool:
    times = [message["created_at"] for message in messages]
    return times == sorted(times, reverse=True)


def test_it_prepares_and_submits_one_batch(desk: Desk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    assert desk.job(job)["status"] == "running"
    (sent,) = desk.submits
    assert desk.provider.refused == []
    requests = sent.body["requests"]
    assert [request["params"]["model"] for request in requests] == [m.split("/")[1] for m in MODELS.values()]
    for request in requests:
        params = request["params"]
        assert [tool["name"] for tool in params["tools"]] == ["get_weather"]
        assert [message["role"] for message in params["messages"]][-1] == "user"
        last = params["messages"][-1]["content"]
        assert "Hi there" in (last if isinstance(last, str) else last[-1]["text"])
    (wave,) = desk.waves(job)
    assert (wave["llm_provider"], wave["status"], wave["agent_count"]) == ("anthropic", "running", 3)
    items = desk.items(job, llm_batch_id=wave["id"])
    assert {item["agent_id"] for item in items} == set(agents)
    assert {(item["request_status"], item["step_status"]) for item in items} == {("created", "paused")}
    for agent in agents:
        shown = [m["message_type"] for m in desk.state_messages(agent)]
        assert desk.stored(agent) == 5, shown
        assert desk.roles_stored(agent) == ["system", "assistant", "tool", "user", "user"]
        assert len(desk.state(agent)["message_ids"]) == 4


def test_all_continue(desk: Desk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True), stop_reason="end_turn")
    (first,) = desk.waves(job)
    before = {agent: desk.stored(agent) for agent in agents}
    desk.round()
    old, new = desk.waves(job)
    assert (old["id"], old["status"]) == (first["id"], "completed")
    assert (new["status"], new["agent_count"]) == ("running", 3)
    assert desk.job(job)["status"] == "running"
    fresh = desk.items(job, llm_batch_id=new["id"])
    assert {(item["request_status"], item["step_status"]) for item in fresh} == {("created", "paused")}
    assert [item["step_state"]["step_number"] for item in fresh] == [1, 1, 1]
    assert all("get_weather" in i["step_state"]["tool_rules_solver"]["tool_call_history"] for i in fresh)
    done = desk.items(job, llm_batch_id=old["id"])
    assert {(item["request_status"], item["step_status"]) for item in done} == {("completed", "completed")}
    for agent in agents:
        assert desk.stored(agent) - before[agent] >= 2
        assert len(desk.state(agent)["message_ids"]) == 6
    messages = desk.messages(job)
    assert len(messages) == 12
    assert descending(messages)
    assert {tuple(roles(messages, agent)) for agent in agents} == {tuple(CONTINUES)}
    assert desk.provider.refused == []


def test_some_stop(desk: Desk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True), marker=MODELS["sonnet"].split("/")[1])
    desk.answers(*weather(heartbeat=False))
    desk.round()
    new = desk.waves(job)[-1]
    assert (new["status"], new["agent_count"]) == ("running", 1)
    assert [item["agent_id"] for item in desk.items(job, llm_batch_id=new["id"])] == agents[:1]
    messages = desk.messages(job)
    assert descending(messages)
    assert [roles(messages, agent) for agent in agents] == [CONTINUES, STOPS, STOPS]
    assert len(desk.items(job)) == 4


def test_one_fails(desk: Desk) -> None:
    agents = desk.three()
    job = desk.submitted(*agents)
    desk.answers(*weather(heartbeat=True))
    before = {agent: desk.stored(agent) for agent in agents}
    desk.round({agents[0]: "rate_limit"})
    old, new = desk.waves(job)
    assert (old["status"], new["status"], new["agent_count"]) == ("completed", "running", 2)
    by_agent = {item["agent_id"]: item for item in desk.items(job, llm_batch_id=old["id"])}
    assert (by_agent[agents[0]]["request_status"], by_agent[agents[0]]["step_status"]) == ("failed", "paused")
    assert {by_agent[agent]["request_status"] for agent in agents[1:]} == {"completed"}
    assert {item["agent_id"] for item in desk.items(job, llm_batch_id=new["id"])} == set(agents[1:])
    assert desk.stored(agents[0]) == before[agents[0]]
    assert [len(desk.state(agent)["message_ids"]) for agent in agents] == [4, 6, 6]
    messages = desk.messages(job)
    assert len(messages) == 9
    assert descending(messages)
    assert [roles(messages, agent) for agent in agents] == [["user"], CONTINUES, CONTINUES]


def test_a_tool_edits_memory(desk: Desk) -> None:
    agent = desk.agent(desk.tool(RETHINK), memory_blocks=[{"label": "human", "value": "Name: Matt"}])
    job = desk.submitted(agent)
    from tests.scripted.answers import text, tool_use

    given = {"new_memory": "banana", "target_block_label": "human", "request_heartbeat": False}
    desk.answers(text("Let me rethink my memory."), tool_use("rethink_memory", given, "tu_1"))
    desk.round()
    blocks = {block["label"]: block["value"] for block in desk.state(agent)["memory"]["blocks"]}
    assert blocks == {"human": "banana"}
    assert desk.job(job)["status"] == "completed"
    desk.submitted(agent)
    assert "banana" in desk.submits[-1].body["requests"][0]["params"]["system"][0]["text"]
