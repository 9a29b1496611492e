"""A process that stands still is held for dead; when it wakes, nothing that it does counts any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeServer
from tests.scripted.answers import answer, text, tool_use
from tests.servers import ServerProcess
from tests.stories.client import Client, text_of
from tests.survival.conftest import mortal
from tests.survival.kit import (
    MARK_AND_WAIT,
    WAIT,
    Faults,
    World,
    await_end,
    check_whole,
    follow,
    marks,
    stopped,
    wait_until,
)

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def second_server(make_server: MakeServer, mortal_server: ServerProcess, faults: Faults) -> Iterator[ServerProcess]:
    """Another web process on the same database."""
    server = mortal(make_server, faults.directory, data_dir=mortal_server.data_dir)
    yield server
    server.stop()


@pytest.fixture
def other(world: World, second_server: ServerProcess) -> Iterator[Client]:
    with Client(second_server.url, world.provider) as client:
        yield client


def test_it_takes_over_and_ignores_the_tool_of_the_old_owner(
    world: World, api: Client, other: Client, tmp_path: Path
) -> None:
    tool = api.tool(MARK_AND_WAIT)
    agent = api.agent(tool)
    path = tmp_path / "marks"
    call = tool_use(tool["name"], {"path": str(path), "text": "one", "until": str(path) + ".go"})
    api.provider.script("", answer(call), answer(text("I do not know.")))
    follow(api, agent, "go")
    wait_until(lambda: marks(path), "the tool")
    with stopped(world.server):
        run = wait_until(lambda: other.get("/v1/runs/", agent_id=agent), "the run")[0]["id"]
        assert await_end(other, run)["status"] == "completed"
        Path(f"{path}.go").touch()
    follower = follow(other, agent, "and now?")
    follower.join()
    results = [m["tool_return"] for m in other.history(agent) if m["message_type"] == "tool_return_message"]
    assert len(results) == 1
    assert "outcome is unknown" in results[0]
    wait_until(world.server.healthy, "the old owner")
    assert api.send(agent, "still there?").stop == "end_turn"
    assert marks(path) == ["one"]
    assert api.provider.refused == []


def test_it_takes_over_an_answer_and_ignores_the_rest_of_the_old_one(world: World, api: Client, other: Client) -> None:
    agent = api.agent()
    api.provider.script(
        "", answer(text("The old answer, at length."), hold="gate", hold_at=6), answer(text("The new answer."))
    )
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some text")
    with stopped(world.server):
        assert await_end(other, follower.run)["status"] == "completed"
    api.provider.release("gate")
    follower.join()
    assert check_whole(other, agent, follower)["status"] == "completed"
    said = [m["content"] for m in other.history(agent) if m["message_type"] == "assistant_message"]
    assert said == ["The new answer."]
    assert api.provider.refused == []
