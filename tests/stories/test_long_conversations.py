"""The context window: what is folded, what a summary may do, what a request never loses."""

from __future__ import annotations

import pytest

from tests.scripted.answers import Answer, answer, fault, text, thinking, tool_use
from tests.stories.client import Client, approve
from tests.stories.sources import ECHO

WORDS = "many words that fill a window " * 40
SUMMARY = "They talked about words."


def small(api: Client, *tools: dict[str, object], window: int = 3000) -> str:
    return api.agent(*tools, context_window_limit=window, system="Be brief.", max_tokens=200)


def fill(api: Client, agent: str, turns: int) -> None:
    for number in range(turns):
        assert api.send(agent, f"{number} {WORDS}").stop == "end_turn"


def seen(api: Client) -> str:
    return str(api.provider.generations[-1].body["messages"])


def test_it_sends_all_messages_that_are_in_context(api: Client) -> None:
    agent = api.agent()
    for first in range(0, 60, 5):
        api.send(agent, *[f"message {number}." for number in range(first, first + 5)])
    assert all(f"message {number}." in seen(api) for number in range(60))
    assert len(api.get(f"/v1/agents/{agent}")["message_ids"]) == 1 + 60 + 12


def test_it_folds_the_oldest_turns_before_the_window_is_full(api: Client) -> None:
    agent = small(api)
    api.provider.rule(lambda said: answer(text(SUMMARY)) if "<transcript>" in said.user else None)
    fill(api, agent, 12)
    assert SUMMARY in seen(api)
    assert f"11 {WORDS}"[:20] in seen(api)
    assert "'0 many" not in seen(api)
    asked = [g.body for g in api.provider.generations if "<transcript>" in str(g.body["messages"])]
    assert asked
    assert all(not body.get("tools") for body in asked)
    listed = api.history(agent)
    assert len([m for m in listed if m["message_type"] == "user_message"]) == 12
    summaries = [m for m in listed if m["message_type"] == "summary_message"]
    assert summaries
    assert summaries[-1]["summary"] == SUMMARY
    assert (
        summaries[-1]["compaction_stats"]["messages_count_after"]
        < summaries[-1]["compaction_stats"]["messages_count_before"]
    )
    assert api.provider.refused == []


@pytest.mark.parametrize(
    "bad",
    [answer(text("  ")), answer(thinking("only thoughts")), answer(tool_use("x", {})), fault("bad_request")],
)
def test_it_keeps_the_history_when_no_summary_comes(api: Client, bad: Answer) -> None:
    agent = small(api)
    api.provider.rule(lambda said: bad if "<transcript>" in said.user else None)
    answers = []
    for number in range(12):
        answers.append(api.send(agent, f"{number} {WORDS}"))
        if answers[-1].status != 200:
            break
    assert answers[-1].status >= 400
    run = api.runs(agent)[0]
    assert (run["status"], run["stop_reason"]) == ("failed", "context_window_overflow_in_system_prompt")
    assert not [m for m in api.history(agent) if m["message_type"] == "summary_message"]


def test_it_folds_when_the_provider_says_that_the_prompt_is_too_long(api: Client) -> None:
    agent = api.agent()
    fill(api, agent, 4)
    api.provider.rule(lambda said: answer(text(SUMMARY)) if "<transcript>" in said.user else None)
    api.provider.script("", fault("prompt_too_long"))
    done = api.send(agent, "and now?")
    assert done.stop == "end_turn"
    assert SUMMARY in seen(api)


def test_it_refuses_a_message_that_no_window_can_hold(api: Client) -> None:
    agent = small(api)
    before = api.history(agent)
    assert api.send(agent, WORDS * 50).status == 413
    assert api.history(agent) == before
    assert api.send(agent, "hi").stop == "end_turn"


def test_it_keeps_a_pending_set_whole_when_somebody_compacts(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    fill(api, agent, 3)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "x"})))
    asks = api.send(agent, "go")
    api.provider.rule(lambda said: answer(text(SUMMARY)) if "<transcript>" in said.user else None)
    compacted = api.call("POST", f"/v1/agents/{agent}/summarize", {})
    assert compacted.status == 200, compacted.body
    assert compacted.body["summary"] == SUMMARY
    assert compacted.body["num_messages_after"] < compacted.body["num_messages_before"]
    done = api.decide(agent, approve(asks.waiting[0]))
    assert done.only("tool_return_message")["tool_return"] == "echo x"
    fill(api, agent, 3)
    assert api.call("POST", f"/v1/agents/{agent}/summarize", {}).status == 200
    again = api.decide(agent, approve(asks.waiting[0]))
    assert [m["id"] for m in again.messages] == [m["id"] for m in done.messages]
    assert api.provider.refused == []
