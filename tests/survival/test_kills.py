"""SIGKILL at every phase of a run: it goes on after the restart, nothing is lost, doubled or run twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, thinking, tool_use
from tests.stories.client import Client, Json, approve
from tests.survival.kit import MARK, WAIT, World, check_whole, follow, marks

pytestmark = pytest.mark.server

SAID = "I am going to leave a mark now, as you asked."
DONE = "It is done: the mark is there for all to see."


def scripted(api: Client, path: Path, *, asked: int = 1, marker: str = "", **first: Json) -> str:
    """An agent whose model thinks, speaks and calls a tool, ``asked`` times in the same words; then it is done."""
    tool = api.tool(MARK)
    call = tool_use(tool["name"], {"path": str(path), "text": "one"}, id="toolu_the_same")
    parts = (thinking("Let me think about this."), text(SAID), call)
    again = [answer(*parts)] * (asked - 1)
    api.provider.script(marker, answer(*parts, **first), *again, answer(text(DONE)))
    return api.agent(tool)


def told(api: Client, agent: str) -> list[tuple[str, str]]:
    """Status and text of the tool results in the history."""
    found = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    return [(m["status"], m["tool_return"]) for m in found]


def contents(api: Client, agent: str) -> list[str]:
    return [m["content"] for m in api.history(agent) if m["message_type"] == "assistant_message"]


AFTER_KILL: dict[str, tuple[int, int, str]] = {
    # point: how often the model is asked and the tool runs, and what the model is told of it
    "started": (1, 1, "success"),
    "ask": (1, 1, "success"),
    "flush": (2, 1, "success"),
    "flushed": (2, 1, "success"),
    "answered": (2, 1, "success"),
    "act": (1, 0, "error"),
    "acted": (1, 1, "error"),
}


@pytest.mark.parametrize("point", AFTER_KILL)
def test_it_goes_on_after_a_kill(world: World, api: Client, tmp_path: Path, point: str) -> None:
    path = tmp_path / "marks"
    asked, times, status = AFTER_KILL[point]
    agent = scripted(api, path, asked=asked, delay=20)
    world.faults.arm(point)
    follower = follow(api, agent, "go")
    world.await_death()
    world.revive()
    follower.join()
    run = check_whole(api, agent, follower)
    assert (run["status"], run["stop_reason"]) == ("completed", "end_turn")
    assert [result for result, _ in told(api, agent)] == [status]
    assert contents(api, agent) == [SAID, DONE]
    assert marks(path) == ["one"] * times
    assert api.provider.refused == []
    users = [m for m in api.history(agent) if m["message_type"] == "user_message"]
    assert len(users) == 1
    if status == "error":
        assert "outcome is unknown" in json.dumps(told(api, agent))


def test_it_goes_on_after_a_decision_that_nobody_has_claimed(world: World, api: Client, tmp_path: Path) -> None:
    """The decision is stored with its run, and the process dies before it drives it."""
    tool, path = api.gated(MARK), tmp_path / "marks"
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"path": str(path), "text": "one"})), answer(text(DONE)))
    (call_id,) = api.send(agent, "go").waiting
    world.faults.arm("started")
    follower = follow(api, agent, {"type": "approval", "approvals": [approve(call_id)]})
    world.await_death()
    assert marks(path) == []
    world.revive()
    follower.join()
    assert check_whole(api, agent, follower)["stop_reason"] == "end_turn"
    assert (marks(path), [status for status, _ in told(api, agent)]) == (["one"], ["success"])
    assert len(api.provider.generations) == 2
    assert api.provider.refused == []


@pytest.mark.parametrize("point", ["advance", "advanced"])
def test_it_goes_on_after_a_kill_at_the_end_of_an_answer(world: World, api: Client, tmp_path: Path, point: str) -> None:
    path = tmp_path / "marks"
    agent = scripted(api, path, asked=1 if point == "advanced" else 2, hold="gate", hold_at=12)
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    world.faults.arm(point)
    api.provider.release("gate")
    world.await_death()
    world.revive()
    follower.join()
    run = check_whole(api, agent, follower)
    assert run["status"] == "completed"
    assert contents(api, agent) == [SAID, DONE]
    # Committed means claimed: whether the tool had begun nobody can know.
    assert [status for status, _ in told(api, agent)] == (["error"] if point == "advanced" else ["success"])
    assert len(marks(path)) == (0 if point == "advanced" else 1)
    assert api.provider.refused == []
