"""SIGKILL in the middle of an answer: the reader that comes back gets every text once, whatever is said next."""

from __future__ import annotations

import pytest

from tests.scripted.answers import answer, fault, text, thinking
from tests.stories.client import Client, Json, text_of
from tests.survival.kit import (
    WAIT,
    Scenario,
    World,
    check_whole,
    follow,
    replayed,
    superseded_in,
    through_a_crash,
    wait_until,
)

pytestmark = pytest.mark.server

SAID = "The quick brown fox jumps over the lazy dog, twice, and then once more for good measure."
OTHER = "The quick red fox jumps over the lazy dog, but only once."
SHORTER = "The quick brown"
THOUGHT = "I wonder what to say."
SHOWN = len("The quick brown")

SECOND = {
    # what the model says when it is asked again: (reasoning, text), and whether it supersedes what was shown
    "the same": ((THOUGHT, SAID), False),
    "something else": ((THOUGHT, OTHER), True),
    "less": ((THOUGHT, SHORTER), True),
    "other thoughts": (("Now what?", SAID), True),
    "no thoughts": (("", SAID), True),
}


def test_it_tells_every_text_once(world: World, api: Client) -> None:
    told = [asked_again(api, name, *SECOND[name]) for name in SECOND]
    others = [failing(api), cancelled(api), not_streamed(api), told_at_once(api)]
    through_a_crash(world, *told, *others)
    assert api.provider.refused == []


def asked_again(api: Client, name: str, second: tuple[str, str], supersedes: bool) -> Scenario:
    agent = api.agent()
    again = [*([thinking(second[0])] if second[0] else []), text(second[1])]
    api.provider.script(f"[{name}]", answer(thinking(THOUGHT), text(SAID), hold=name, hold_at=14), answer(*again))
    follower = follow(api, agent, f"say [{name}]")
    api.provider.await_held(name, WAIT)
    wait_until(lambda: len("".join(text_of(follower.chunks).values())) > SHOWN, "some text")
    yield
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    said = [m["content"] for m in api.history(agent) if m["message_type"] == "assistant_message"]
    assert said == [second[1]]
    assert bool(superseded_in(follower.chunks)) == supersedes, name
    assert any(chunk["message_type"] == "ping" for chunk in follower.chunks)
    check_every_cursor(api, follower.run)


def check_every_cursor(api: Client, run: str) -> None:
    """Whoever comes back from anywhere gets the rest of what the whole holds."""
    whole = replayed(api, run)
    end = next(chunk["seq_id"] for chunk in whole if chunk["message_type"] == "stop_reason")
    for cut in range(0, end, 4):
        rest = [chunk for chunk in whole if chunk.get("seq_id") is None or chunk["seq_id"] > cut]
        assert shape(replayed(api, run, cut)) == shape(rest)


def shape(chunks: list[dict[str, Json]]) -> list[tuple[Json, str]]:
    return [(chunk.get("seq_id"), chunk["message_type"]) for chunk in chunks]


def failing(api: Client) -> Scenario:
    """The second try ends with an error: readers see it, and it is the run's."""
    agent = api.agent()
    api.provider.script("[to fail]", answer(text(SAID), hold="fail", hold_at=8), fault("bad_request", "no more"))
    follower = follow(api, agent, "say [to fail]")
    api.provider.await_held("fail", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some text")
    yield
    follower.join()
    run = api.get(f"/v1/runs/{follower.run}")
    assert (run["status"], run["stop_reason"]) == ("failed", "llm_api_error")
    stops = [chunk["stop_reason"] for chunk in follower.chunks if chunk["message_type"] == "stop_reason"]
    assert stops == ["llm_api_error"]
    assert api.send(agent, "again").stop == "end_turn"


def cancelled(api: Client) -> Scenario:
    """The second try says something else and is cancelled: what it had said stays, under its own id."""
    agent = api.agent()
    second = answer(text("No. " + SAID), hold="second", hold_at=8)
    api.provider.script("[to stop]", answer(text(SAID), hold="first", hold_at=8), second)
    follower = follow(api, agent, "say [to stop]")
    api.provider.await_held("first", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some text")
    yield
    api.provider.await_held("second", WAIT)
    wait_until(lambda: superseded_in(follower.chunks), "the ping that supersedes")
    api.call("POST", f"/v1/agents/{agent}/messages/cancel", {})
    follower.join()
    said = [m for m in api.history(agent) if m["message_type"] == "assistant_message"]
    assert [m["id"] for m in said] == list(text_of(replayed(api, follower.run)))
    assert said[0]["content"].startswith("No. ")
    assert check_whole(api, agent, follower)["status"] == "cancelled"
    assert api.send(agent, "again").stop == "end_turn"


def not_streamed(api: Client) -> Scenario:
    """A reader of whole messages saw nothing yet: nothing is superseded."""
    agent = api.agent()
    api.provider.script("[in one]", answer(text(SAID), hold="whole"), answer(text(OTHER)))
    follower = follow(api, agent, "say [in one]", stream_tokens=False)
    api.provider.await_held("whole", WAIT)
    yield
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert superseded_in(follower.chunks) == set()
    assert list(text_of(follower.chunks).values()) == [OTHER]


def told_at_once(api: Client) -> Scenario:
    """A run that was over before: its replay is the same afterwards."""
    agent = api.agent()
    api.provider.script("[before]", answer(thinking(THOUGHT), text(SAID)))
    follower = follow(api, agent, "say [before]")
    follower.join()
    before = replayed(api, follower.run)
    yield
    assert replayed(api, follower.run) == before
    assert replayed(api, follower.run, follower.cursor) == before[-3:], (
        "whoever missed the last word gets the end again"
    )
    assert check_whole(api, agent, follower)["status"] == "completed"
