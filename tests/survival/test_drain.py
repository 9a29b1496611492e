"""SIGTERM: no new runs, readers are told to come back, runs end or are handed over, exit 0."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, tokens, tool_use
from tests.stories.client import Client, text_of
from tests.survival.kit import END, MARK, MARK_AND_WAIT, WAIT, World, check_whole, follow, marks, wait_until

pytestmark = pytest.mark.server
STEPS = 16


def stop(world: World) -> int:
    assert world.server.process is not None
    world.server.process.send_signal(signal.SIGTERM)
    return world.server.process.wait(timeout=40)


def test_it_lets_a_short_run_end(world: World, api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(text("short"), hold="gate"))
    got: list[str] = []
    sender = threading.Thread(target=lambda: got.extend(api.send(agent, "go").types))
    sender.start()
    api.provider.await_held("gate", WAIT)
    assert world.server.process is not None
    world.server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in world.server.tail(), "the drain")
    with world.client() as other:
        refused = other.send(agent, "me too")
    assert refused.status == 503
    assert refused.headers["Retry-After"]
    api.provider.release("gate")
    sender.join(timeout=20)
    assert got == ["assistant_message"]
    assert world.server.process.wait(timeout=30) == 0


def test_it_hands_over_between_two_verbs(world: World, api: Client, tmp_path: Path) -> None:
    """A run with many steps leaves at the end of a verb: nothing of it is in doubt."""
    tool = api.tool(MARK)
    agent = api.agent(tool)
    path = tmp_path / "marks"
    steps = [answer(tool_use(tool["name"], {"path": str(path), "text": str(n)}), delay=25) for n in range(STEPS)]
    api.provider.script("", *steps, answer(text("done")))
    follower = follow(api, agent, "go")
    wait_until(lambda: len(marks(path)) >= 2, "some steps")
    begun = time.monotonic()
    assert stop(world) == 0
    assert time.monotonic() - begun < 9
    assert 2 <= len(marks(path)) < STEPS
    world.revive()
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == [str(number) for number in range(STEPS)]
    results = [m["status"] for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert results == ["success"] * STEPS
    assert follower.breaks >= 1
    assert api.provider.refused == []


def test_it_gives_a_long_answer_back(world: World, api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(30), hold="gate", hold_at=10), answer(tokens(30)))
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some tokens")
    assert stop(world) == 0
    api.provider.await_outcome("gone", timeout=WAIT)
    assert not [chunk for chunk in follower.chunks if chunk["message_type"] in END]
    world.revive()
    follower.join()
    run = check_whole(api, agent, follower)
    assert run["status"] == "completed"
    assert list(text_of(follower.chunks).values()) == ["tok " * 30]
    assert api.provider.refused == []


def test_it_says_so_of_a_tool_that_took_too_long(world: World, api: Client, tmp_path: Path) -> None:
    tool = api.tool(MARK_AND_WAIT)
    agent = api.agent(tool)
    path = tmp_path / "marks"
    call = tool_use(tool["name"], {"path": str(path), "text": "one", "until": str(path) + ".go"})
    api.provider.script("", answer(call), answer(text("done")))
    follower = follow(api, agent, "go")
    wait_until(lambda: marks(path), "the tool")
    assert stop(world) == 0
    world.revive()
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    results = [m["tool_return"] for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert len(results) == 1
    assert "outcome is unknown" in results[0]
    assert marks(path) == ["one"]
