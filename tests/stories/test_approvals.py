"""Approvals over the wire: asked, approved, denied, answered, repeated, contradicted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.scripted.answers import answer, text, thinking, tool_use
from tests.stories.client import MODEL, Answer, Client, Json, approve, deny, returned, types_of
from tests.stories.sources import ECHO, NOTHING, SLOW

NONE_PENDING = "No tool call is currently awaiting approval"


def asked(api: Client, *, source: str = ECHO, **arguments: object) -> tuple[str, str, Answer]:
    """An agent with one gated tool that waits: its id, the tool's name, the answer."""
    tool = api.gated(source)
    agent = api.agent(tool)
    given = arguments or {"text": "hello"}
    api.provider.script("", answer(thinking("I must."), text("I will."), tool_use(tool["name"], given)))
    return agent, tool["name"], api.send(agent, "go")


def test_it_asks_before_a_gated_tool_runs(api: Client) -> None:
    agent, name, asks = asked(api)
    assert asks.types == ["reasoning_message", "assistant_message", "approval_request_message"]
    assert asks.stop == "requires_approval"
    request = asks.only("approval_request_message")
    assert request["tool_call"]["name"] == name
    assert {message["id"] for message in asks.messages} == {request["id"]}
    assert api.runs(agent)[0]["status"] == "completed"
    state = api.get(f"/v1/agents/{agent}")
    assert state["pending_approval"]["tool_calls"] == request["tool_calls"]


def test_it_runs_what_was_approved_and_answers(api: Client) -> None:
    agent, name, asks = asked(api)
    done = api.decide(agent, approve(asks.waiting[0]))
    assert done.types == ["tool_return_message", "reasoning_message", "assistant_message"]
    result = done.only("tool_return_message")
    assert (result["status"], result["tool_return"], result["name"]) == ("success", "echo hello", name)
    assert result["tool_returns"][0]["tool_call_id"] == asks.waiting[0]
    assert result["step_id"] == asks.messages[0]["step_id"]
    assert result["run_id"] != asks.messages[0]["run_id"]
    assert done.stop == "end_turn"
    assert [m["message_type"] for m in api.history(agent)][-4:] == [
        "approval_response_message", "tool_return_message", "reasoning_message", "assistant_message",
    ]  # fmt: skip
    assert api.provider.refused == []


@pytest.mark.parametrize("reason", ["too risky", "quotes \" and ' and\nnew lines 🙈", None])
def test_it_tells_the_model_why_a_call_was_denied(api: Client, reason: str | None) -> None:
    agent, _, asks = asked(api)
    done = api.decide(agent, deny(asks.waiting[0], reason))
    result = done.only("tool_return_message")
    assert result["status"] == "error"
    assert result["tool_return"] == f"Error: request to call tool denied. User reason: {reason}"
    assert str(reason) in done.messages[-1]["content"]
    assert api.provider.refused == []


def test_it_refuses_a_user_message_while_a_call_waits(api: Client) -> None:
    agent, _, asks = asked(api)
    before = api.history(agent)
    refused = api.send(agent, "yes, approve")
    assert refused.status == 409
    assert refused.body["detail"]["code"] == "PENDING_APPROVAL"
    assert "Please approve or deny the pending request before continuing" in refused.body["detail"]["message"]
    assert refused.body["detail"]["pending_request_id"] == asks.messages[0]["id"]
    assert refused.body["detail"]["tool_call_ids"] == asks.waiting
    assert refused.headers["x-should-retry"] == "false"
    body = {"messages": [{"role": "user", "content": "yes"}]}
    streamed = api.call("POST", f"/v1/agents/{agent}/messages/stream", body, headers={"Accept": "text/event-stream"})
    assert (streamed.status, streamed.body) == (409, refused.body)
    assert api.history(agent) == before


def test_it_takes_an_approval_and_a_message_in_one_request(api: Client) -> None:
    agent, _, asks = asked(api)
    done = api.decide(agent, approve(asks.waiting[0]), also=[{"role": "user", "content": "and hurry"}])
    assert done.stop == "end_turn"
    assert [m["message_type"] for m in api.history(agent)][-5:-2] == [
        "approval_response_message", "tool_return_message", "user_message",
    ]  # fmt: skip
    assert "and hurry" in str(api.provider.generations[-1].body)
    assert api.provider.refused == []


def test_it_says_that_nothing_waits(api: Client) -> None:
    agent = api.agent()
    refused = api.decide(agent, approve("call_1"))
    assert (refused.status, NONE_PENDING in refused.body["detail"]) == (400, True)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([approve("other")], 400),
        ([], 422),
        ([{"type": "approval", "tool_call_id": "ID", "approve": None}], 422),
        ([{"type": "approval", "tool_call_id": "ID"}], 422),
        ([approve("ID"), deny("ID")], 400),
        ([deny("ID")] * 34, 400),
        ([approve("ID"), approve("extra")], 400),
        ([{"type": "nonsense", "tool_call_id": "ID", "approve": True}], 422),
    ],
)
def test_it_changes_nothing_for_a_decision_that_is_not_clear(
    api: Client, verdicts: list[dict[str, object]], status: int, streamed: bool
) -> None:
    agent, _, asks = asked(api)
    before = api.history(agent)
    given = [{**v, "tool_call_id": asks.waiting[0]} if v.get("tool_call_id") == "ID" else v for v in verdicts]
    path = f"/v1/agents/{agent}/messages/stream" if streamed else ""
    refused = api.send(agent, {"type": "approval", "approvals": given}, path=path)
    assert refused.status == status, refused.body
    assert isinstance(refused.body["detail"], str)
    assert api.history(agent) == before
    assert api.decide(agent, approve(asks.waiting[0])).stop == "end_turn"


def test_it_names_the_ids_that_it_expected(api: Client) -> None:
    agent, _, asks = asked(api)
    refused = api.decide(agent, approve("other"))
    assert refused.body["detail"] == f"Invalid tool call IDs. Expected '{asks.waiting}', but received '['other']'."


@pytest.mark.parametrize("yes", [True, False])
def test_it_takes_the_legacy_form(api: Client, yes: bool) -> None:
    agent, _, asks = asked(api)
    request = asks.messages[0]["id"]
    wrong = api.send(agent, {"type": "approval", "approve": yes, "approval_request_id": "message-nonsense"})
    assert wrong.status == 400
    assert wrong.body["detail"].startswith(f"Invalid approval request ID. Expected '{request}'")
    done = api.send(agent, {"approve": yes, "approval_request_id": request, "reason": "so"})
    assert done.only("tool_return_message")["status"] == ("success" if yes else "error")
    response = next(m for m in api.history(agent) if m["message_type"] == "approval_response_message")
    assert (response["approval_request_id"], response["approve"]) == (request, yes)


@pytest.mark.parametrize("form", ["tool_return", "approvals"])
def test_it_takes_the_result_that_a_client_got(api: Client, form: str) -> None:
    agent, _, asks = asked(api)
    result = returned(asks.waiting[0], "42 is the answer")
    message = (
        {"type": "tool_return", "tool_returns": [result]}
        if form == "tool_return"
        else {"type": "approval", "approvals": [result]}
    )
    done = api.send(agent, message)
    assert done.only("tool_return_message")["tool_return"] == "42 is the answer"
    assert "42 is the answer" in done.messages[-1]["content"]


def test_it_runs_nothing_twice_when_a_decision_is_repeated(api: Client) -> None:
    agent, _, asks = asked(api)
    first = api.decide(agent, approve(asks.waiting[0]))
    asked_so_far = len(api.provider.generations)
    again = api.decide(agent, approve(asks.waiting[0]))
    assert again.status == 200
    assert [m["id"] for m in again.messages] == [m["id"] for m in first.messages]
    assert len(api.provider.generations) == asked_so_far
    assert len(api.runs(agent)) == 2


def test_it_refuses_another_decision_afterwards(api: Client) -> None:
    agent, _, asks = asked(api)
    api.decide(agent, deny(asks.waiting[0], "no"))
    refused = api.decide(agent, approve(asks.waiting[0]))
    assert (refused.status, NONE_PENDING in refused.body["detail"]) == (400, True)
    results = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert [m["status"] for m in results] == ["error"]


def test_it_runs_once_for_two_clients_that_approve_at_once(api: Client) -> None:
    agent, _, asks = asked(api, source=SLOW, seconds=0.2)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.decide(agent, approve(asks.waiting[0])), range(8)))
    assert {found.status for found in answers} == {200}
    assert {found.only("tool_return_message")["id"] for found in answers} == {
        answers[0].only("tool_return_message")["id"]
    }
    results = [m for m in api.history(agent) if m["message_type"] == "tool_return_message"]
    assert len(results) == 1


@pytest.mark.parametrize("model", [MODEL, "openai/gpt-4.1"])
def test_it_asks_again_for_the_next_gated_call(api: Client, model: str) -> None:
    first, second = api.gated(ECHO), api.gated(NOTHING)
    agent = api.agent(first, second, model=model)
    api.provider.script(
        "",
        answer(tool_use(first["name"], {"text": "a"})),
        answer(tool_use(second["name"], {})),
        answer(text("both done")),
    )
    one = api.send(agent, "go")
    two = api.decide(agent, deny(one.waiting[0], "not this"))
    assert two.stop == "requires_approval"
    assert two.waiting != one.waiting
    assert len(two.waiting) == 1
    stale = api.decide(agent, approve(one.waiting[0]))
    assert stale.status == 400
    three = api.decide(agent, approve(two.waiting[0]))
    assert three.only("tool_return_message")["tool_return"] == "done"
    assert three.stop == "end_turn"
    assert api.provider.refused == []


def test_it_does_not_ask_again_for_what_was_denied_in_this_turn(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    same = answer(tool_use(tool["name"], {"text": "a"}))
    api.provider.script("", same, same, answer(text("I give up")))
    asks = api.send(agent, "go")
    done = api.decide(agent, deny(asks.waiting[0], "never"))
    assert done.stop == "end_turn"
    assert [m["status"] for m in done.messages if m["message_type"] == "tool_return_message"] == ["error", "error"]
    assert len(api.get(f"/v1/agents/{agent}/messages", limit=100)) > 0


def test_it_stops_asking_when_approval_is_switched_off(api: Client) -> None:
    agent, name, asks = asked(api)
    api.call("PATCH", f"/v1/agents/{agent}/tools/approval/{name}", {"requires_approval": False})
    done = api.decide(agent, approve(asks.waiting[0]))
    assert done.stop == "end_turn"
    api.provider.script("", answer(tool_use(name, {"text": "free"})), answer(text("ok")))
    free = api.send(agent, "again")
    assert free.types == ["tool_call_message", "tool_return_message", "assistant_message"]


def test_it_lets_an_approved_call_run_within_max_steps_of_one(api: Client) -> None:
    agent, _, asks = asked(api)
    done = api.decide(agent, approve(asks.waiting[0]), max_steps=1)
    assert done.stop == "max_steps"
    assert done.only("tool_return_message")["status"] == "success"


@pytest.mark.parametrize(
    "options", [{"override_model": "openai/gpt-4.1"}, {"override_system": "Be brief."}, {"client_tools": []}]
)
def test_it_runs_what_was_approved_whatever_options_come_with_the_decision(
    api: Client, options: dict[str, Json]
) -> None:
    agent, _, asks = asked(api)
    done = api.decide(agent, approve(asks.waiting[0]), **options)
    assert (done.stop, done.only("tool_return_message")["status"]) == ("end_turn", "success")
    assert [m["message_type"] for m in api.history(agent)].count("approval_request_message") == 1
    assert api.provider.refused == []


def test_it_streams_what_follows_a_decision(api: Client) -> None:
    agent, _, asks = asked(api)
    chunks = api.stream(agent, {"type": "approval", "approvals": [approve(asks.waiting[0])]})
    assert types_of(chunks) == [
        "tool_return_message", "reasoning_message", "assistant_message", "stop_reason", "usage_statistics", "done",
    ]  # fmt: skip


def test_it_denies_what_waits_when_the_run_is_cancelled(api: Client) -> None:
    agent, _, asks = asked(api)
    cancelled = api.call("POST", f"/v1/agents/{agent}/messages/cancel", {})
    assert cancelled.body == {asks.messages[0]["run_id"]: "cancelled"}
    assert api.get(f"/v1/runs/{asks.messages[0]['run_id']}")["status"] == "cancelled"
    done = api.send(agent, "hello again")
    assert done.stop == "end_turn"
    assert api.provider.refused == []
    assert api.call("POST", f"/v1/agents/{agent}/messages/cancel", {}).body == {}


def test_it_keeps_conversations_apart(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    other = api.call("POST", f"/v1/conversations/?agent_id={agent}", {}).body["id"]
    path = f"/v1/conversations/{other}/messages"
    api.provider.script("", answer(tool_use(tool["name"], {"text": "x"})))
    asks = api.send(agent, "go", path=path, streaming=False)
    assert asks.stop == "requires_approval"
    assert api.send(agent, "hi").stop == "end_turn"
    assert api.send(agent, "hi", path=path, streaming=False).status == 409
    assert api.call("POST", f"/v1/conversations/{other}/cancel", {}).status == 200
    assert api.send(agent, "hi", path=path, streaming=False).stop == "end_turn"
    assert api.provider.refused == []
