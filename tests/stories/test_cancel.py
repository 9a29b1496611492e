"""Cancel: in the middle of a model call, of a tool, with nothing to cancel."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.scripted.answers import answer, text, tokens, tool_use
from tests.stories.client import Client, Json, text_of, types_of
from tests.stories.sources import SLOW


def in_background(api: Client, agent: str, chunks: list[dict[str, Json]]) -> threading.Thread:
    thread = threading.Thread(target=lambda: chunks.extend(api.stream(agent, "go")), daemon=True)
    thread.start()
    return thread


def test_it_ends_a_run_within_a_second_in_the_middle_of_an_answer(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(500), delay=20))
    chunks: list[dict[str, Json]] = []
    reader = in_background(api, agent, chunks)
    run = api.wait_for(lambda: api.get("/v1/runs/", agent_id=agent, active=True), "a running run")[0]["id"]
    api.provider.await_requests(1)
    api.wait_for(lambda: len(api.get(f"/v1/runs/{run}/trace", limit=1000)) > 3, "some tokens")
    begun = time.monotonic()
    assert api.call("POST", f"/v1/agents/{agent}/messages/cancel", {"run_ids": [run]}).body == {run: "cancelled"}
    reader.join(timeout=5)
    assert time.monotonic() - begun < 1.5
    assert types_of(chunks)[-3:] == ["stop_reason", "usage_statistics", "done"]
    assert [c["stop_reason"] for c in chunks if c["message_type"] == "stop_reason"] == ["cancelled"]
    api.provider.await_outcome("gone")
    found = api.get(f"/v1/runs/{run}")
    assert (found["status"], found["stop_reason"]) == ("cancelled", "cancelled")
    said = [m["content"] for m in api.history(agent) if m["message_type"] == "assistant_message"]
    assert said == list(text_of(chunks).values())
    assert 0 < len(said[0]) < 2000
    assert api.send(agent, "go on").stop == "end_turn"
    assert api.provider.refused == []


def test_it_ends_a_run_while_a_tool_works(api: Client) -> None:
    tool = api.tool(SLOW)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"seconds": 20})))
    chunks: list[dict[str, Json]] = []
    reader = in_background(api, agent, chunks)
    api.wait_for(lambda: any(m["message_type"] == "tool_call_message" for m in api.history(agent)), "the call")
    begun = time.monotonic()
    assert list(api.call("POST", f"/v1/agents/{agent}/messages/cancel", {}).body.values()) == ["cancelled"]
    reader.join(timeout=5)
    assert time.monotonic() - begun < 2
    assert [c["stop_reason"] for c in chunks if c["message_type"] == "stop_reason"] == ["cancelled"]
    results = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert [m["status"] for m in results] == ["error"]
    assert api.send(agent, "go on").stop == "end_turn"
    assert api.provider.refused == []


def test_it_takes_one_message_at_a_time(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(text("slow"), hold="gate"))
    chunks: list[dict[str, Json]] = []
    reader = in_background(api, agent, chunks)
    api.provider.await_held("gate")
    busy = api.send(agent, "me too")
    assert (busy.status, busy.body["run_id"]) == (409, api.runs(agent)[0]["id"])
    assert "Another request is currently being processed" in busy.body["detail"]
    assert "x-should-retry" not in busy.headers
    api.provider.release("gate")
    reader.join(timeout=5)
    assert api.send(agent, "now").stop == "end_turn"
    users = [m["content"] for m in api.history(agent) if m["message_type"] == "user_message"]
    assert users == ["go", "now"]


def test_it_takes_one_of_ten_that_come_at_once(api: Client) -> None:
    agent = api.agent()
    texts = [f"number {number}" for number in range(10)]
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda said: api.send(agent, said), texts))
    assert {found.status for found in answers} <= {200, 409}
    taken = [said for said, found in zip(texts, answers, strict=True) if found.status == 200]
    users = [m["content"] for m in api.history(agent) if m["message_type"] == "user_message"]
    assert users
    assert sorted(users) == sorted(taken)
    assert len(api.runs(agent)) == len(taken)
    assert api.provider.refused == []
