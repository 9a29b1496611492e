"""What goes wrong at the model's side, and that the agent answers the next message all the same."""

from __future__ import annotations

import pytest

from tests.scripted.answers import Answer, answer, fault, raw, text, thinking, tool_use
from tests.stories.client import Client, approve, deny, returned
from tests.stories.sources import ECHO, SQUARE

UNUSABLE = raw(b"this is not an answer", content_type="application/json")


@pytest.mark.parametrize(
    ("broken", "status", "kind"),
    [
        (fault("bad_request"), 400, "llm_bad_request"),
        (fault("authentication"), 401, "llm_authentication"),
        (fault("no_credit"), 402, "llm_insufficient_credits"),
        (fault("rate_limit", times=9), 429, "llm_rate_limit"),
        (fault("overloaded", times=9), 502, "llm_error"),
        (fault("server", times=9), 502, "llm_error"),
        (fault("html", times=9), 502, "llm_error"),
        (UNUSABLE, 502, "llm_error"),
    ],
)
def test_it_answers_a_failure_of_the_model_with_its_status(api: Client, broken: Answer, status: int, kind: str) -> None:
    agent = api.agent()
    api.provider.script("", broken)
    failed = api.send(agent, "go")
    assert failed.status == status, failed.body
    assert failed.body["error"]["type"] == kind
    assert failed.headers["x-should-retry"] == "false"
    assert "sk-" not in str(failed.body)
    api.provider.reset()
    assert api.send(agent, "again").stop == "end_turn"
    assert api.provider.refused == []
    users = [m["content"] for m in api.history(agent) if m["message_type"] == "user_message"]
    assert users == ["go", "again"]


def test_it_tries_again_before_anything_was_said(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", fault("overloaded"), fault("rate_limit", retry_after=0.01), answer(text("at last")))
    assert api.send(agent, "go").messages[-1]["content"] == "at last"


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (answer(text("half an answer"), error_at=4), "invalid_llm_response"),
        (answer(text("half an answer"), cut_at_event=4), "invalid_llm_response"),
        (raw(b"garbage\n\n", content_type="text/event-stream"), "invalid_llm_response"),
        (answer(text("I call"), stop_reason="tool_use"), "no_tool_call"),
        (fault("bad_request"), "llm_api_error"),
    ],
)
@pytest.mark.parametrize("verdict", ["approve", "deny", "answer"])
def test_it_keeps_the_decision_when_the_model_fails_after_it(
    api: Client, broken: Answer, reason: str, verdict: str
) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "x"})), broken)
    asks = api.send(agent, "go")
    call = asks.waiting[0]
    given = {"approve": approve(call), "deny": deny(call, "no"), "answer": returned(call, "mine")}[verdict]
    chunks = api.stream(agent, {"type": "approval", "approvals": [given]})
    assert chunks[0]["message_type"] == "tool_return_message"
    assert [c["stop_reason"] for c in chunks if c["message_type"] == "stop_reason"] == [reason]
    assert [c["message_type"] for c in chunks][-3:] == ["error_message", "usage_statistics", "done"]
    done = api.stream(agent, "Thank you.")
    assert done[-3]["stop_reason"] == "end_turn"
    assert api.provider.refused == []
    assert [m["content"] for m in api.history(agent) if m["message_type"] == "assistant_message"][-1]
    assert "half an answer" not in [m.get("content") for m in api.history(agent)]


def test_it_goes_on_where_the_model_failed_when_the_decision_comes_again(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "x"})), fault("bad_request"))
    asks = api.send(agent, "go")
    assert api.decide(agent, approve(asks.waiting[0])).status == 400
    again = api.decide(agent, approve(asks.waiting[0]))
    assert again.stop == "end_turn"
    results = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert len(results) == 1
    assert api.provider.refused == []


def test_it_runs_nothing_of_an_answer_that_was_cut_off(api: Client) -> None:
    tool = api.tool(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(text("I will"), tool_use(tool["name"], {"text": "x"}), stop_reason="max_tokens"))
    done = api.send(agent, "go")
    assert done.stop == "max_tokens_exceeded"
    assert "tool_return_message" not in done.types
    assert "tool_call_message" not in done.types
    assert api.send(agent, "go on").stop == "end_turn"
    assert api.provider.refused == []


@pytest.mark.parametrize("stop", ["refusal", "something_new"])
def test_it_takes_unknown_reasons_and_refusals_as_an_end(api: Client, stop: str) -> None:
    agent = api.agent()
    api.provider.script("", answer(text("I would rather not."), stop_reason=stop))
    done = api.send(agent, "go")
    assert (done.stop, done.messages[-1]["content"]) == ("end_turn", "I would rather not.")


def test_it_goes_on_when_the_model_paused(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(text("wait"), stop_reason="pause_turn"), answer(text("here")))
    assert [m["content"] for m in api.send(agent, "go").messages] == ["wait", "here"]
    assert api.provider.refused == []


def test_it_asks_once_more_after_an_empty_answer(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(), answer(text("sorry")))
    assert api.send(agent, "go").messages[-1]["content"] == "sorry"
    api.provider.script("", answer(), answer())
    failed = api.send(agent, "go")
    assert (failed.status, failed.body["error"]["type"]) == (502, "llm_error")
    assert api.send(agent, "again").stop == "end_turn"
    assert api.provider.refused == []


def test_it_takes_an_empty_answer_after_results_as_the_end(api: Client) -> None:
    tool = api.tool(SQUARE)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"number": 2})), answer())
    done = api.send(agent, "go")
    assert (done.stop, done.types) == ("end_turn", ["tool_call_message", "tool_return_message"])
    assert api.send(agent, "and?").stop == "end_turn"
    assert api.provider.refused == []


def test_it_survives_an_answer_of_thoughts_only(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(thinking("only thoughts")))
    assert api.send(agent, "go").types == ["reasoning_message"]
    assert api.send(agent, "again").stop == "end_turn"
    assert api.provider.refused == []


@pytest.mark.parametrize(
    "arguments", ['{"text": "x"', "{'text': 'x'}", '{"text": "a"}{"text": "b"}', "[1, 2]", '"x"', "5"]
)
def test_it_runs_nothing_with_arguments_that_cannot_be_read(api: Client, arguments: str) -> None:
    tool = api.tool(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], arguments)), answer(text("I see")))
    done = api.send(agent, "go")
    result = done.only("tool_return_message")
    assert (result["status"], done.stop) == ("error", "end_turn")
    assert "echo" not in result["tool_return"]
    assert len(result["tool_return"]) < 2000
    assert api.send(agent, "next").stop == "end_turn"
    assert api.provider.refused == []


def test_it_ends_at_max_steps(api: Client) -> None:
    tool = api.tool(SQUARE)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"number": 1}), times=0))
    done = api.send(agent, "go", max_steps=3)
    assert (done.stop, done.types.count("tool_return_message"), done.body["usage"]["step_count"]) == ("max_steps", 3, 3)
    run = api.runs(agent)[0]
    assert (run["status"], run["stop_reason"]) == ("completed", "max_steps")
