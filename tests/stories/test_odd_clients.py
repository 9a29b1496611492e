"""Odd inputs and long silences: what a client may send and what it gets, whatever the model says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scripted.answers import answer, fault, text, tool_use
from tests.stories.client import Client, approve, deny, returned, types_of
from tests.stories.sources import ECHO, NOTHING


def test_it_shows_the_arguments_that_will_run(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, tool_rules=[{"type": "run_first", "tool_name": tool["name"], "args": {"text": "fixed"}}])
    api.provider.script("", answer(tool_use(tool["name"], {"text": "mine"})))
    asks = api.send(agent, "go")
    assert asks.only("approval_request_message")["tool_call"]["arguments"] == '{"text": "fixed"}'
    done = api.decide(agent, approve(asks.waiting[0]))
    assert done.only("tool_return_message")["tool_return"] == "echo fixed"


def test_it_takes_the_request_for_the_call_when_only_one_waits(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, parallel=True)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "a"})))
    asks = api.send(agent, "go")
    request = asks.messages[0]["id"]
    assert api.decide(agent, deny(request, "no")).stop == "end_turn"
    two = [tool_use(tool["name"], {"text": text_}) for text_ in ("b", "c")]
    api.provider.script("", answer(*two))
    asks = api.send(agent, "go")
    request = asks.messages[0]["id"]
    for item in (
        {"type": "approval", "approve": False, "approval_request_id": request},
        {"type": "approval", "approvals": [deny(request)]},
    ):
        refused = api.send(agent, item)
        assert refused.status == 400
        assert all(call in refused.body["detail"] for call in asks.waiting)
    assert api.decide(agent, *[deny(call) for call in asks.waiting]).stop == "end_turn"


def test_it_says_that_a_background_run_failed_in_its_second_step(api: Client) -> None:
    tool = api.tool(NOTHING)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {})), fault("bad_request"))
    chunks = api.stream(agent, "go", background=True)
    run = chunks[0]["run_id"]
    assert types_of(chunks)[-4:] == ["stop_reason", "error_message", "usage_statistics", "done"]
    assert api.get(f"/v1/runs/{run}")["status"] == "failed"
    assert api.get("/v1/runs/active", agent_id=agent) == []
    with api.open_stream(f"/v1/runs/{run}/stream", {}) as frames:
        assert types_of(list(frames)) == types_of(chunks)


def raw_json(api: Client, method: str, path: str, body: object) -> dict[str, Any]:
    """Send JSON with every odd character escaped, as only some clients can."""
    response = api.http.request(method, path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.parametrize("odd", ["a\x00b", "a\ud83db", "\udc00", "🙂 \u202e rtl \u200d zero"])
def test_it_keeps_odd_characters_the_same_everywhere(api: Client, odd: str) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    clean = odd.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    api.provider.script("", answer(text("so"), tool_use(tool["name"], {"text": clean or "x"})))
    changed = raw_json(api, "PATCH", f"/v1/agents/{agent}", {"metadata": {"odd": odd}, "name": "n" + odd})
    assert (changed["metadata"], changed["name"]) == ({"odd": clean}, "n" + clean)
    path = f"/v1/agents/{agent}/messages"
    asks = raw_json(api, "POST", path, {"messages": [{"role": "user", "content": "x" + odd}]})
    call = asks["messages"][-1]["tool_calls"][0]["tool_call_id"]
    raw_json(api, "POST", path, {"messages": [{"type": "tool_return", "tool_returns": [returned(call, "y" + odd)]}]})
    listed = api.history(agent)
    assert next(m["content"] for m in listed if m["message_type"] == "user_message") == "x" + clean
    assert next(m["tool_return"] for m in listed if m["message_type"] == "tool_return_message") == "y" + clean
    assert api.provider.refused == []


@pytest.mark.parametrize("name", ["functions.search", "Search ", "no_such", "näme"])
def test_it_tells_the_model_which_tools_there_are(api: Client, name: str) -> None:
    tool = api.tool(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(name, {})), answer(text("I see")))
    done = api.send(agent, "go")
    result = done.only("tool_return_message")
    assert result["status"] == "error"
    assert tool["name"] in result["tool_return"]
    assert done.stop == "end_turn"
    assert api.send(agent, "next").stop == "end_turn"


def test_it_cuts_long_results_with_a_mark(api: Client) -> None:
    tool = api.gated(ECHO, return_char_limit=100)
    agent = api.agent(tool)
    for give in ("server", "client"):
        long = ("🙂" * 300) if give == "client" else "z" * 300
        api.provider.script("", answer(tool_use(tool["name"], {"text": long})))
        asks = api.send(agent, "go")
        verdict = approve(asks.waiting[0]) if give == "server" else returned(asks.waiting[0], long)
        result = api.decide(agent, verdict).only("tool_return_message")["tool_return"]
        assert "... [NOTE: function output was truncated since it exceeded the character limit (3" in result
        assert len(result) < 220
        assert result[:90] in str(api.provider.generations[-1].body["messages"])


def test_it_keeps_calls_paired_when_the_model_changes(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, model="openai/gpt-4.1")
    api.provider.script("", answer(tool_use(tool["name"], {"text": "a"}, id="functions.Bash:0")))
    asks = api.send(agent, "go")
    assert asks.waiting == ["functions.Bash:0"]
    changed = api.call("PATCH", f"/v1/agents/{agent}", {"model": "anthropic/claude-sonnet-4-5-20250929"})
    assert changed.status == 200
    done = api.decide(agent, approve("functions.Bash:0"))
    assert done.only("tool_return_message")["tool_call_id"] == "functions.Bash:0"
    assert done.stop == "end_turn"
    assert api.provider.refused == []


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"x"', b'{"messages": 5}', b'{"messages": [5]}', b'{"messages": [{}]}',
        b'{"messages": [{"role": "user"}]}', b'{"messages": [{"role": "user", "content": [{}]}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "max_steps": 0}',
        b'{"messages": [{"role": "user", "content": "x"}], "max_steps": "x"}',
        b'{"messages": [{"role": "user", "content": "x"}], "client_tools": [{"name": 5}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "input": "y"}',
        b'{"messages": [{"role": "user", "content": "x"}], "stream_tokens": true}',
        b'{"messages": [{"role": "user", "content": NaN}]}', b"\xff\xfe", b'{"a":' * 3000,
        b'{"messages": [{"type": "approval"}]}', b'{"messages": [{"type": "tool_return"}]}',
        b'{"messages": [{"role": "user", "content": "x"}, {"approve": true, "approval_request_id": "m"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "include_return_message_types": 5}',
    ],
)  # fmt: skip
def test_it_refuses_what_is_no_request(api: Client, body: bytes) -> None:
    agent = api.agent()
    before = api.history(agent)
    answer_ = api.http.post(f"/v1/agents/{agent}/messages", content=body, headers={"Content-Type": "application/json"})
    assert answer_.status_code in (400, 422), answer_.text
    detail: Any = answer_.json()["detail"]
    assert isinstance(detail, str)
    assert api.history(agent) == before


def test_it_refuses_a_model_that_nobody_offers(api: Client) -> None:
    agent = api.agent()
    refused = api.send(agent, "hi", override_model="nobody/nothing")
    assert refused.status == 404
    assert "nobody/nothing" in refused.body["detail"]
    assert api.send(agent, "hi").stop == "end_turn"
