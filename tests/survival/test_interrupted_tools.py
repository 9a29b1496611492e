"""SIGKILL while tools work: what had ended is not run again, what had begun is told, asked or run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, tool_use
from tests.stories.client import Client, Json, approve, deny, returned
from tests.survival.kit import MARK, MARK_AND_WAIT, World, check_whole, follow, marks, wait_until

pytestmark = pytest.mark.server
UNKNOWN = "outcome is unknown"


def waiting_call(api: Client, tool: dict[str, Json], path: Path, text_: str = "one") -> Json:
    return tool_use(tool["name"], {"path": str(path), "text": text_, "until": str(path) + ".go"})


def returns(api: Client, agent: str) -> list[tuple[str, str]]:
    found = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    return [(r["status"], r["tool_return"]) for m in found for r in m["tool_returns"]]


def test_it_goes_on_with_a_set_of_three(world: World, api: Client, tmp_path: Path) -> None:
    quick, slow = api.tool(MARK), api.tool(MARK_AND_WAIT)
    agent = api.agent(quick, slow, parallel=True)
    path = tmp_path / "marks"
    calls = [
        tool_use(quick["name"], {"path": str(path), "text": "first"}),
        waiting_call(api, slow, path, "second"),
        tool_use(quick["name"], {"path": str(path), "text": "third"}),
    ]
    api.provider.script("", answer(*calls), answer(text("done")))
    follower = follow(api, agent, "go")
    wait_until(lambda: marks(path) == ["first", "second"], "the second tool")
    world.crash()
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == ["first", "second", "third"]
    told = returns(api, agent)
    assert [status for status, _ in told] == ["success", "error", "success"]
    assert UNKNOWN in told[1][1]
    assert api.send(agent, "next").stop == "end_turn"
    assert api.provider.refused == []


def interrupted(world: World, api: Client, tmp_path: Path, **tool_fields: Json) -> tuple[str, str, Path]:
    """A gated tool that was approved and killed while it worked: agent, the id of the call, its marks."""
    tool = api.gated(MARK_AND_WAIT, **tool_fields)
    agent = api.agent(tool)
    path = tmp_path / "marks"
    api.provider.script("", answer(waiting_call(api, tool, path)), answer(text("done")))
    asked = api.send(agent, "go")
    call_id = asked.waiting[0]
    decision = {"type": "approval", "approvals": [approve(call_id)]}
    follower = follow(api, agent, decision)
    wait_until(lambda: marks(path) == ["one"], "the tool")
    world.crash()
    follower.join()
    assert [c["stop_reason"] for c in follower.chunks if c["message_type"] == "stop_reason"] == ["requires_approval"]
    requests = [c for c in follower.chunks if c["message_type"] == "approval_request_message"]
    assert [c["tool_call"]["tool_call_id"] for c in requests] == [call_id]
    Path(f"{path}.go").touch()
    return agent, call_id, path


SETTLED = {
    # how a person settles it: the decision, how often the tool ran in all, the result that the model gets
    "it did not happen": (approve, 2, ("success", "marked one")),
    "it happened": (lambda call: returned(call, "it is there"), 1, ("success", "it is there")),
    "tell the agent": (deny, 1, ("error", UNKNOWN)),
}


@pytest.mark.parametrize("how", SETTLED)
def test_it_asks_a_person_about_a_gated_tool(world: World, api: Client, tmp_path: Path, how: str) -> None:
    agent, call_id, path = interrupted(world, api, tmp_path)
    refused = api.send(agent, "hello?")
    assert (refused.status, refused.body["detail"]["code"]) == (409, "PENDING_APPROVAL")
    assert refused.body["detail"]["tool_call_ids"] == [call_id]
    assert api.get(f"/v1/agents/{agent}")["pending_approval"]["tool_call"]["tool_call_id"] == call_id
    decision, times, (status, said) = SETTLED[how]
    answered = api.decide(agent, decision(call_id))
    assert (answered.status, answered.stop) == (200, "end_turn"), answered
    assert marks(path) == ["one"] * times
    told = returns(api, agent)
    assert len(told) == 1
    assert told[0][0] == status
    assert said in told[0][1]
    assert api.send(agent, "next").stop == "end_turn"
    assert api.provider.refused == []


def test_it_runs_a_harmless_tool_again(world: World, api: Client, tmp_path: Path) -> None:
    tool = api.tool(MARK_AND_WAIT)
    change = f"Tool.objects.filter(name={tool['name']!r}).update(on_interrupt='rerun')"
    world.server.manage("shell", "-v", "0", "-c", f"from tools.models import Tool; {change}")
    agent = api.agent(tool)
    path = tmp_path / "marks"
    api.provider.script("", answer(waiting_call(api, tool, path)), answer(text("done")))
    follower = follow(api, agent, "go")
    wait_until(lambda: marks(path) == ["one"], "the tool")
    world.crash()
    Path(f"{path}.go").touch()
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == ["one", "one"]
    assert returns(api, agent) == [("success", "marked one")]
    assert api.provider.refused == []
