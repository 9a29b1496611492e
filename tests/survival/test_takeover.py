"""SIGKILL in the middle of an answer: the reader that comes back gets every text once, whatever is said next."""

from __future__ import annotations

import pytest

from tests.scripted.answers import answer, fault, text, thinking
from tests.stories.client import Client, text_of
from tests.survival.kit import WAIT, World, check_whole, follow, replayed, superseded_in, wait_until

pytestmark = pytest.mark.server

SAID = "The quick brown fox jumps over the lazy dog, twice, and then once more for good measure."
OTHER = "The quick red fox jumps over the lazy dog, but only once."
DIFFERS = len("The quick ")
SHORTER = "The quick brown"
THOUGHT = "I wonder what to say."

SECOND = {
    # what the model says when it is asked again: (reasoning, text), and whether it supersedes what was shown
    "the same": ((THOUGHT, SAID), False),
    "something else": ((THOUGHT, OTHER), True),
    "less": ((THOUGHT, SHORTER), True),
    "other thoughts": (("Now what?", SAID), True),
    "no thoughts": (("", SAID), True),
}


@pytest.mark.parametrize(("second", "supersedes"), SECOND.values(), ids=SECOND)
def test_it_tells_every_text_once(world: World, api: Client, second: tuple[str, str], supersedes: bool) -> None:
    agent = api.agent()
    parts = [thinking(second[0])] if second[0] else []
    api.provider.script(
        "",
        answer(thinking(THOUGHT), text(SAID), hold="gate", hold_at=14),
        answer(*parts, text(second[1])),
    )
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: len("".join(text_of(follower.chunks).values())) > DIFFERS, "some text")
    world.crash()
    follower.join()
    run = check_whole(api, agent, follower)
    assert run["status"] == "completed"
    assert [m["content"] for m in api.history(agent) if m["message_type"] == "assistant_message"] == [second[1]]
    assert bool(superseded_in(follower.chunks)) == supersedes
    assert any(chunk["message_type"] == "ping" for chunk in follower.chunks)
    check_every_cursor(api, follower.run, follower.chunks)
    assert api.provider.refused == []


def check_every_cursor(api: Client, run: str, chunks: list[dict[str, object]]) -> None:
    """Whoever comes back from anywhere gets the rest of what the whole holds."""
    whole = replayed(api, run)
    end = next(int(str(chunk["seq_id"])) for chunk in whole if chunk["message_type"] == "stop_reason")
    for cut in range(0, end, 4):
        rest = [chunk for chunk in whole if chunk.get("seq_id") is None or int(str(chunk["seq_id"])) > cut]
        ids = [(chunk.get("seq_id"), chunk["message_type"]) for chunk in replayed(api, run, cut)]
        assert ids == [(chunk.get("seq_id"), chunk["message_type"]) for chunk in rest]


def test_it_ends_with_an_error_that_readers_see(world: World, api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(text(SAID), hold="gate", hold_at=8), fault("bad_request", "no more"))
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some text")
    world.crash()
    follower.join()
    run = api.get(f"/v1/runs/{follower.run}")
    assert (run["status"], run["stop_reason"]) == ("failed", "llm_api_error")
    stops = [chunk["stop_reason"] for chunk in follower.chunks if chunk["message_type"] == "stop_reason"]
    assert stops == ["llm_api_error"]
    assert api.send(agent, "again").stop == "end_turn"
    assert api.provider.refused == []


def test_it_keeps_what_a_cancelled_second_try_had_said(world: World, api: Client) -> None:
    agent = api.agent()
    api.provider.script(
        "", answer(text(SAID), hold="gate", hold_at=8), answer(text("No. " + SAID), hold="other", hold_at=8)
    )
    follower = follow(api, agent, "go")
    api.provider.await_held("gate", WAIT)
    wait_until(lambda: text_of(follower.chunks), "some text")
    world.crash()
    api.provider.await_held("other", WAIT)
    wait_until(lambda: superseded_in(follower.chunks), "the ping that supersedes")
    api.call("POST", f"/v1/agents/{agent}/messages/cancel", {})
    follower.join()
    said = [m for m in api.history(agent) if m["message_type"] == "assistant_message"]
    assert [m["id"] for m in said] == list(text_of(replayed(api, follower.run)))
    assert said[0]["content"].startswith("No. ")
    assert check_whole(api, agent, follower)["status"] == "cancelled"
    assert api.send(agent, "again").stop == "end_turn"
    assert api.provider.refused == []


def test_it_answers_a_request_that_does_not_stream(world: World, api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(text(SAID), hold="gate"), answer(text(OTHER)))
    follower = follow(api, agent, "go", stream_tokens=False)
    api.provider.await_held("gate", WAIT)
    world.crash()
    follower.join()
    run = check_whole(api, agent, follower)
    assert run["status"] == "completed"
    assert superseded_in(follower.chunks) == set()
    assert list(text_of(follower.chunks).values()) == [OTHER]
