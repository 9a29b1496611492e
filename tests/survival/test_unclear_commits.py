"""The database fails before a commit, or right after it so that nobody knows: everything still happens once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, thinking, tool_use
from tests.stories.client import Client
from tests.survival.kit import MARK, World, check_whole, follow, marks

pytestmark = pytest.mark.server
STEPS = 5
POINTS = {
    "before every commit of a verb": ["advance"],
    "after every commit of a verb": ["advanced"],
    "before every commit of deltas": ["flush"],
    "after every commit of deltas": ["flushed"],
    "everywhere": ["advance", "advanced", "flush", "flushed"],
}


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
def test_it_does_everything_once(world: World, api: Client, tmp_path: Path, points: list[str]) -> None:
    tool = api.tool(MARK)
    agent = api.agent(tool, parallel=True)
    path = tmp_path / "marks"

    def call(number: int) -> object:
        return tool_use(tool["name"], {"path": str(path), "text": str(number)})

    steps = [
        answer(thinking("Once more."), text(f"Step {number} of many. " * 3), call(number), delay=15)  # type: ignore[arg-type]
        for number in range(STEPS)
    ]
    api.provider.script("", *steps, answer(text("That was all. " * 4), delay=15))
    for point in points:
        world.faults.arm(point, "flaky")
    follower = follow(api, agent, "go")
    follower.join()
    hits = [len((world.faults.directory / f"{point}.hits").read_text()) for point in points]
    world.faults.clear()
    assert min(hits) > STEPS
    run = check_whole(api, agent, follower)
    assert (run["status"], run["stop_reason"]) == ("completed", "end_turn")
    assert follower.breaks == 0
    assert marks(path) == [str(number) for number in range(STEPS)]
    results = [m["status"] for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert results == ["success"] * STEPS
    assert len(api.provider.generations) == STEPS + 1, "the model was asked again"
    assert api.provider.refused == []
