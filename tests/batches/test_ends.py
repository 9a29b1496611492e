"""Batches always end: whatever agents answer, whatever results look like, whoever is in twice."""

from __future__ import annotations

import pytest

from tests import rest
from tests.batches.desk import MODELS, Desk, roles
from tests.rest import UNKNOWN
from tests.scripted.answers import answer, text, tool_use

HOSTILE = ("ftp://x", "file:///etc/passwd", "http://127.0.0.1:1/", "http://169.254.169.254/", "http://[::1]/")


def test_a_text_reply_finishes_its_member(desk: Desk) -> None:
    agents = [*desk.plain(2), desk.agent()]
    job = desk.submitted(*agents)
    desk.answers(text("Hello yourself."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert desk.job(job)["stop_reason"] == "end_turn"
    messages = desk.messages(job)
    assert {tuple(roles(messages, agent)) for agent in agents} == {("assistant", "user")}
    detail = desk.detail(job)
    assert (detail["counts"], detail["progress"], detail["phase"]) == ({"done": 3}, 1.0, None)
    assert detail["usage"]["total_tokens"] > 0
    assert desk.items(job)[0]["usage"]["completion_tokens"] > 0


def test_every_tool_call_of_an_agent_without_heartbeats_goes_on(desk: Desk) -> None:
    agent = desk.agent(desk.tool(), agent_type="letta_v1_agent")
    job = desk.submitted(agent)
    desk.answers(text("One moment."), tool_use("get_weather", {"location": "Oslo"}), times=1)
    desk.answers(text("It is sunny."))
    desk.round()
    assert len(desk.waves(job)) == 2
    sent = desk.submits[-1].body["requests"][0]["params"]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert "Hi there" in str(sent[0])
    assert "The weather in Oslo is sunny." in str(sent[2])
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert roles(desk.messages(job), agent) == ["assistant", "tool", "assistant", "user"]
    assert desk.provider.refused == []


def test_a_failed_tool_goes_on_without_a_heartbeat_too(desk: Desk) -> None:
    tool = desk.tool('def breaks() -> str:\n    """Breaks."""\n    raise ValueError(\'broken\')\n')
    job = desk.submitted(desk.agent(tool))
    desk.answers(tool_use("breaks", {"request_heartbeat": False}), times=1)
    desk.round()
    assert len(desk.waves(job)) == 2
    assert "broken" in str(desk.submits[-1].body)


def test_the_same_agent_twice_takes_its_turns(desk: Desk) -> None:
    agent, other = desk.plain(2)
    job = desk.submitted(agent, agent, other)
    assert desk.detail(job)["counts"] == {"in_flight": 2, "waiting": 1}
    desk.answers(text("Yes."))
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 2, "in_flight": 1}
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert roles(desk.messages(job), agent) == ["assistant", "user", "assistant", "user"]
    assert desk.provider.refused == []


def test_a_busy_agent_waits_its_turn(desk: Desk) -> None:
    agent = desk.plain()[0]
    first, second = desk.submitted(agent), desk.submitted(agent)
    assert desk.detail(second)["counts"] == {"waiting": 1}
    desk.answers(text("Yes."))
    desk.round()
    assert desk.job(first)["status"] == "completed"
    assert desk.detail(second)["counts"] == {"in_flight": 1}


def test_the_agents_live_messages_wait_and_are_told_of_the_batch(desk: Desk) -> None:
    from agents.actions.requests import Input, MessageRequest
    from agents.actions.send import send
    from agents.policies.rows import default_conversation
    from lettaweb.lib.problems import Problem

    agent = desk.plain()[0]
    job = desk.submitted(agent)
    request = MessageRequest((Input("user", [{"type": "text", "text": "now"}]),), None, {})
    with pytest.raises(Problem) as caught:
        send(default_conversation(desk.row(agent)), request, actor=None)
    assert (caught.value.status, caught.value.extra["batch_id"]) == (409, job)


def test_later_requests_see_the_question_and_the_answer(desk: Desk) -> None:
    agent = desk.plain()[0]
    desk.submitted(agent, text="What is the capital of France?")
    desk.answers(text("Paris."), times=1)
    desk.round()
    desk.submitted(agent, text="And of Italy?")
    sent = desk.submits[-1].body["requests"][0]["params"]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert "capital of France" in str(sent[0])


def test_a_deleted_agent_ends_its_part(desk: Desk) -> None:
    gone, stays = desk.plain(2)
    job = desk.submitted(gone, stays)
    rest.delete(f"agents/{gone}")
    desk.answers(text("Yes."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert desk.detail(job)["counts"] == {"done": 1, "failed": 1}
    failed = next(item for item in desk.items(job) if item["agent_id"] == gone)
    assert failed["state"] == "failed"


def test_an_agent_that_was_cancelled_live_ends_its_part(desk: Desk) -> None:
    agent = desk.plain()[0]
    job = desk.submitted(agent)
    rest.post(f"agents/{agent}/messages/cancel", {})
    desk.answers(text("Too late."))
    desk.round()
    assert desk.job(job)["status"] == "cancelled"
    assert desk.detail(job)["usage"]["total_tokens"] > 0


def test_all_failed_is_failed(desk: Desk) -> None:
    job = desk.submitted(*desk.plain(2))
    desk.round(default="bad_request")
    shown = desk.job(job)
    assert (shown["status"], shown["stop_reason"]) == ("failed", "error")
    assert desk.detail(job)["counts"] == {"failed": 2}


def test_all_expired_is_expired_and_agents_stay_usable(desk: Desk) -> None:
    agent = desk.plain()[0]
    job = desk.submitted(agent)
    desk.round(default="expired")
    assert desk.job(job)["status"] == "expired"
    (item,) = desk.items(job)
    assert (item["request_status"], item["error"]["type"]) == ("expired", "expired")
    again = desk.submitted(agent, text="Once more")
    sent = desk.submits[-1].body["requests"][0]["params"]["messages"]
    assert len(sent) == 1
    assert "Hi there" not in str(sent)
    desk.answers(text("Here I am."))
    desk.round()
    assert desk.job(again)["status"] == "completed"


def test_models_of_one_vendor_share_a_batch(desk: Desk) -> None:
    agents = [desk.agent(model=model) for model in MODELS.values()]
    desk.submitted(*agents)
    assert len(desk.submits) == 1


def test_what_an_agent_may_not_be_asked_is_refused(desk: Desk) -> None:
    agent = desk.plain()[0]
    ask = {"agent_id": agent, "messages": [{"role": "user", "content": "hi"}]}
    cases = [
        ({}, 422),
        ({"requests": []}, 422),
        ({"requests": [{**ask, "messages": []}]}, 422),
        ({"requests": [{**ask, "input": "both"}]}, 422),
        ({"requests": [{"messages": ask["messages"]}]}, 422),
        ({"requests": [{**ask, "agent_id": "agent-1"}]}, 422),
        ({"requests": [{**ask, "agent_id": f"agent-{UNKNOWN}"}]}, 404),
        ({"requests": [{**ask, "messages": [{"type": "approval", "approvals": []}]}]}, 422),
        ({"requests": [{**ask, "override_model": "nobody/x"}]}, 404),
        *(({"requests": [ask], "callback_url": url}, 422) for url in HOSTILE),
        ({"requests": [ask], "retry": {"max": -1}}, 422),
        ({"requests": [ask], "retry": {"max": True}}, 422),
    ]
    for body, status in cases:
        rest.post("messages/batches", body, expect=status)
    assert rest.get("messages/batches") == []


def test_an_unusual_answer_never_stops_the_others(desk: Desk) -> None:
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.rule(lambda conversation: None)
    desk.answers(stop_reason="end_turn", times=1)
    desk.answers(text("Fine."))
    desk.round()
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert desk.detail(job)["counts"] == {"done": 3}


def test_a_long_answer_that_was_cut_ends_its_member(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    desk.provider.script("", answer(text("cut"), stop_reason="max_tokens"))
    desk.round()
    assert desk.job(job)["status"] == "failed"
    assert desk.items(job)[0]["error"]["type"] == "max_tokens_exceeded"


def test_an_agent_that_clears_its_buffer_forgets_what_was_said_in_a_batch(desk: Desk) -> None:
    (agent,) = desk.plain(message_buffer_autoclear=True)
    desk.answers(text("Yes."))
    job = desk.submitted(agent)
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert desk.roles_stored(agent) == ["system", "user", "assistant"]
    assert desk.context(agent) == 1


def test_a_note_about_a_rule_follows_the_answer_that_broke_it(desk: Desk) -> None:
    rule = {"type": "required_before_exit", "tool_name": "get_weather"}
    agent = desk.agent(desk.tool(), agent_type="letta_v1_agent", tool_rules=[rule])
    desk.answers(text("Done."))
    job = desk.submitted(agent)
    desk.round()
    assert desk.roles_stored(agent) == ["system", "user", "assistant", "system"]
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    last = desk.submits[-1].body["requests"][0]["params"]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "user"]
