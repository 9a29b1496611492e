"""SIGKILL while tools work: what had ended is not run again, what had begun is told, asked or run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, tool_use
from tests.stories.client import Client, Json, approve, deny, returned
from tests.survival.kit import (
    MARK,
    MARK_AND_WAIT,
    Follower,
    Scenario,
    World,
    check_whole,
    follow,
    marks,
    through_a_crash,
    wait_until,
)

pytestmark = pytest.mark.server
UNKNOWN = "outcome is unknown"

SETTLED = {
    # how a person settles it: the decision, how often the tool ran in all, the result that the model gets
    "it did not happen": (approve, 2, ("success", "marked one")),
    "it happened": (lambda call: returned(call, "it is there"), 1, ("success", "it is there")),
    "tell the agent": (deny, 1, ("error", UNKNOWN)),
}


def test_it_knows_what_it_cannot_know(world: World, api: Client, tmp_path: Path) -> None:
    settled = [asked(api, tmp_path, how) for how in SETTLED]
    through_a_crash(world, set_of_three(api, tmp_path), harmless(world, api, tmp_path), *settled)
    assert api.provider.refused == []


def waiting_call(tool: dict[str, Json], path: Path, said: str = "one") -> Json:
    return tool_use(tool["name"], {"path": str(path), "text": said, "until": f"{path}.go"})


def returns(api: Client, agent: str) -> list[tuple[str, str]]:
    found = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    return [(r["status"], r["tool_return"]) for m in found for r in m["tool_returns"]]


def set_of_three(api: Client, place: Path) -> Scenario:
    """The first had ended, the second was at work, the third had not begun."""
    quick, slow = api.tool(MARK), api.tool(MARK_AND_WAIT)
    agent, path = api.agent(quick, slow, parallel=True), place / "three"
    first, third = (tool_use(quick["name"], {"path": str(path), "text": said}) for said in ("first", "third"))
    api.provider.script("[three]", answer(first, waiting_call(slow, path, "second"), third), answer(text("done")))
    follower = follow(api, agent, "do [three]")
    wait_until(lambda: marks(path) == ["first", "second"], "the second tool")
    yield
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == ["first", "second", "third"]
    told = returns(api, agent)
    assert [status for status, _ in told] == ["success", "error", "success"]
    assert UNKNOWN in told[1][1]
    assert api.send(agent, "next").stop == "end_turn"


def harmless(world: World, api: Client, place: Path) -> Scenario:
    """A tool that may be run again is."""
    tool = api.tool(MARK_AND_WAIT)
    change = f"Tool.objects.filter(name={tool['name']!r}).update(on_interrupt='rerun')"
    world.server.manage("shell", "-v", "0", "-c", f"from tools.models import Tool; {change}")
    agent, path = api.agent(tool), place / "harmless"
    api.provider.script("[harmless]", answer(waiting_call(tool, path)), answer(text("done")))
    follower = follow(api, agent, "do [harmless]")
    wait_until(lambda: marks(path) == ["one"], "the tool")
    yield
    Path(f"{path}.go").touch()
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == ["one", "one"]
    assert returns(api, agent) == [("success", "marked one")]


def asked(api: Client, place: Path, how: str) -> Scenario:
    """A tool that people approved was at work: a person says what became of it."""
    tool = api.gated(MARK_AND_WAIT)
    agent, path = api.agent(tool), place / how.replace(" ", "-")
    api.provider.script(f"[{how}]", answer(waiting_call(tool, path)), answer(text("done")))
    (call_id,) = api.send(agent, f"do [{how}]").waiting
    follower = follow(api, agent, {"type": "approval", "approvals": [approve(call_id)]})
    wait_until(lambda: marks(path) == ["one"], "the tool")
    yield
    follower.join()
    Path(f"{path}.go").touch()
    check_asked(api, agent, follower, call_id)
    decision, times, (status, said) = SETTLED[how]
    answered = api.decide(agent, decision(call_id))
    assert (answered.status, answered.stop) == (200, "end_turn"), answered
    assert marks(path) == ["one"] * times
    (told,) = returns(api, agent)
    assert told[0] == status
    assert said in told[1]
    assert api.send(agent, "next").stop == "end_turn"


def check_asked(api: Client, agent: str, follower: Follower, call_id: str) -> None:
    """The run has ended like one that asks, and the call waits like any other."""
    assert [c["stop_reason"] for c in follower.chunks if c["message_type"] == "stop_reason"] == ["requires_approval"]
    requests = [c for c in follower.chunks if c["message_type"] == "approval_request_message"]
    assert [c["tool_call"]["tool_call_id"] for c in requests] == [call_id]
    refused = api.send(agent, "hello?")
    assert (refused.status, refused.body["detail"]["code"]) == (409, "PENDING_APPROVAL")
    assert refused.body["detail"]["tool_call_ids"] == [call_id]
    assert api.get(f"/v1/agents/{agent}")["pending_approval"]["tool_call"]["tool_call_id"] == call_id
    (card,) = api.get("/api/approvals/", agent_id=agent)["items"]
    assert card["state"] == "unknown"
