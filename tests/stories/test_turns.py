"""What a turn may do: tool rules, both kinds of agents, memory tools, client tools."""

from __future__ import annotations

import json
from typing import Any

from tests.scripted.answers import answer, text, thinking, tool_use
from tests.stories.client import Client, approve, returned
from tests.stories.sources import BOOM, ECHO, NOTHING, REMEMBER, SQUARE


def rule(kind: str, tool: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": kind, "tool_name": tool["name"], **fields}


def offered(api: Client, number: int = -1) -> list[str]:
    return [tool["name"] for tool in api.provider.generations[number].body.get("tools", [])]


# --- rules -------------------------------------------------------------------------------------------


def test_it_starts_with_the_first_tool_and_ends_with_the_last(api: Client) -> None:
    first, other, last = api.tool(ECHO), api.tool(SQUARE), api.tool(NOTHING)
    rules = [rule("run_first", first, args={"text": "fixed"}), rule("exit_loop", last)]
    agent = api.agent(first, other, last, tool_rules=rules)
    api.provider.script(
        "", answer(tool_use(first["name"], {"text": "mine"})), answer(tool_use(last["name"], {})), answer(text("never"))
    )
    done = api.send(agent, "go")
    assert done.stop == "tool_rule"
    assert [m["tool_return"] for m in done.messages if m["message_type"] == "tool_return_message"] == [
        "echo fixed",
        "done",
    ]
    calls = [m["tool_call"] for m in done.messages if m["message_type"] == "tool_call_message"]
    assert json.loads(calls[0]["arguments"]) == {"text": "fixed"}
    assert offered(api, 0) == [first["name"]]
    assert api.provider.generations[0].body["tool_choice"]["type"] == "any"
    assert set(offered(api, 1)) == {first["name"], other["name"], last["name"]}


def test_it_refuses_a_gated_call_that_breaks_a_rule_without_asking(api: Client) -> None:
    first, gated = api.tool(ECHO), api.gated(SQUARE)
    agent = api.agent(first, gated, tool_rules=[rule("run_first", first)])
    api.provider.script(
        "",
        answer(tool_use(gated["name"], {"number": 2})),
        answer(tool_use(first["name"], {"text": "a"})),
        answer(text("ok")),
    )
    done = api.send(agent, "go")
    returns = [m for m in done.messages if m["message_type"] == "tool_return_message"]
    assert returns[0]["tool_return"].startswith(
        f"[ToolConstraintError] Cannot call {gated['name']}, valid tools include: ['{first['name']}']"
    )
    assert "approval_request_message" not in done.types
    assert done.stop == "end_turn"


def test_it_follows_children_conditions_and_counts(api: Client) -> None:
    one, two, three = api.tool(SQUARE), api.tool(ECHO), api.tool(NOTHING)
    rules = [
        rule("conditional", one, child_output_mapping={"4": two["name"]}, default_child=three["name"]),
        rule("constrain_child_tools", two, children=[three["name"]]),
        rule("max_count_per_step", one, max_count_limit=1),
    ]
    agent = api.agent(one, two, three, tool_rules=rules)
    api.provider.script(
        "",
        answer(tool_use(one["name"], {"number": 2})),
        answer(tool_use(two["name"], {"text": "x"})),
        answer(tool_use(three["name"], {})),
        answer(text("ok")),
    )
    assert api.send(agent, "go").stop == "end_turn"
    assert [offered(api, n) for n in (1, 2)] == [[two["name"]], [three["name"]]]
    assert one["name"] not in offered(api, 3)


def test_it_does_not_end_before_a_required_tool_was_called(api: Client) -> None:
    tool = api.tool(NOTHING)
    agent = api.agent(tool, tool_rules=[rule("required_before_exit", tool)])
    api.provider.script("", answer(text("bye")), answer(tool_use(tool["name"], {})), answer(text("now bye")))
    done = api.send(agent, "go")
    assert done.messages[-1]["content"] == "now bye"
    assert "ToolRuleViolated: You must call" in str(api.provider.generations[1].body)
    assert api.provider.refused == []


def test_it_forgets_the_rules_of_a_tool_that_is_gone(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, tool_rules=[rule("run_first", tool)])
    assert api.call("PATCH", f"/v1/agents/{agent}/tools/detach/{tool['id']}").status == 200
    assert api.get(f"/v1/agents/{agent}")["tool_rules"] == []
    assert api.send(agent, "hi").stop == "end_turn"


# --- kinds of agents ---------------------------------------------------------------------------------


def test_it_beats_on_for_an_agent_with_heartbeats(api: Client) -> None:
    tool = api.tool(ECHO)
    agent = api.agent(tool, agent_type="memgpt_v2_agent", include_base_tool_rules=False)
    assert len(api.get(f"/v1/agents/{agent}")["message_ids"]) == 4
    api.provider.script(
        "",
        answer(tool_use(tool["name"], {"text": "a", "request_heartbeat": True, "thinking": "hm"})),
        answer(tool_use(tool["name"], {"text": "b", "request_heartbeat": False})),
    )
    done = api.send(agent, "go")
    assert [m["tool_return"] for m in done.messages if m["message_type"] == "tool_return_message"] == [
        "echo a",
        "echo b",
    ]
    assert done.stop == "end_turn"
    assert len(api.provider.generations) == 2
    schema = api.provider.generations[0].body["tools"][0]["input_schema"]
    assert "request_heartbeat" in schema["required"]
    assert all(
        "heartbeat" not in m["tool_call"]["arguments"]
        for m in done.messages
        if m["message_type"] == "tool_call_message"
    )
    assert api.provider.refused == []


def test_it_beats_on_after_a_failure(api: Client) -> None:
    tool = api.tool(BOOM)
    agent = api.agent(tool, agent_type="memgpt_agent", include_base_tool_rules=False)
    api.provider.script(
        "", answer(tool_use(tool["name"], {"text": "a", "request_heartbeat": False})), answer(text("I see"))
    )
    assert api.send(agent, "go").messages[-1]["content"] == "I see"
    assert api.provider.refused == []


def test_it_speaks_through_send_message(api: Client) -> None:
    base = {tool["name"]: tool for tool in api.call("POST", "/v1/tools/add-base-tools").body}
    agent = api.agent(base["send_message"], agent_type="memgpt_v2_agent")
    api.provider.script(
        "", answer(thinking("hm"), tool_use("send_message", {"message": "hello you", "request_heartbeat": False}))
    )
    done = api.send(agent, "go")
    assert [(m["message_type"], m.get("content")) for m in done.messages][1:] == [("assistant_message", "hello you")]
    plain = api.history(agent, use_assistant_message=False)
    assert "tool_call_message" in [m["message_type"] for m in plain][-2:]


# --- memory ------------------------------------------------------------------------------------------


def test_it_edits_memory_and_sees_it_in_the_next_prompt(api: Client) -> None:
    base = {tool["name"]: tool for tool in api.call("POST", "/v1/tools/add-base-tools").body}
    blocks = [{"label": "human", "value": "Name: unknown", "limit": 60}]
    agent = api.agent(base["memory_replace"], base["memory_insert"], memory_blocks=blocks)
    edit = {"label": "human", "old_string": "unknown", "new_string": "Ada"}
    api.provider.script("", answer(tool_use("memory_replace", edit)), answer(text("noted")))
    assert api.send(agent, "I am Ada").stop == "end_turn"
    assert api.get(f"/v1/agents/{agent}/core-memory/blocks/human")["value"] == "Name: Ada"
    assert "Name: Ada" in str(api.provider.generations[1].body["system"])
    assert "Name: Ada" in api.history(agent)[0]["content"]
    too_long = {"label": "human", "new_string": "x" * 61}
    api.provider.script("", answer(tool_use("memory_insert", too_long)), answer(text("oh")))
    done = api.send(agent, "more")
    assert done.only("tool_return_message")["status"] == "error"
    assert api.get(f"/v1/agents/{agent}/core-memory/blocks/human")["value"] == "Name: Ada"


def test_it_lets_an_uploaded_tool_write_to_memory(api: Client) -> None:
    tool = api.tool(REMEMBER)
    agent = api.agent(tool, memory_blocks=[{"label": "human", "value": "old"}])
    api.provider.script("", answer(tool_use(tool["name"], {"value": "banana"})), answer(text("ok")))
    assert api.send(agent, "go").only("tool_return_message")["status"] == "success"
    assert api.get(f"/v1/agents/{agent}/core-memory/blocks/human")["value"] == "banana"
    assert "banana" in str(api.provider.generations[1].body["system"])


# --- client tools ------------------------------------------------------------------------------------

LIST_DIR = {
    "name": "list_dir",
    "description": "Lists.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def test_it_waits_for_a_tool_that_the_client_runs(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tool_use("list_dir", {"path": "/"})))
    asks = api.send(agent, "go", client_tools=[LIST_DIR])
    assert asks.stop == "requires_approval"
    refused = api.decide(agent, approve(asks.waiting[0]))
    assert refused.status == 400
    done = api.send(
        agent, {"type": "tool_return", "tool_returns": [returned(asks.waiting[0], "a.txt")]}, client_tools=[LIST_DIR]
    )
    assert done.only("tool_return_message")["tool_return"] == "a.txt"
    assert done.stop == "end_turn"
    assert api.provider.refused == []


def test_it_settles_a_client_call_and_a_server_call_together(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, parallel=True)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "s"}), tool_use("list_dir", {"path": "/"})))
    asks = api.send(agent, "go", client_tools=[LIST_DIR])
    server, client = asks.waiting
    assert api.decide(agent, returned(server, "by hand"), approve(client)).status == 400
    done = api.decide(agent, returned(server, "by hand"), returned(client, "a.txt"))
    assert [r["tool_return"] for r in done.only("tool_return_message")["tool_returns"]] == ["by hand", "a.txt"]
    assert api.provider.refused == []


def test_it_takes_images_in_results_and_messages(api: Client) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
    agent = api.agent(parallel=True)
    said = api.send(agent, {"role": "user", "content": [{"type": "text", "text": "look"}, image]})
    assert said.stop == "end_turn"
    two = [tool_use("list_dir", {"path": "/a"}), tool_use("list_dir", {"path": "/b"})]
    api.provider.script("", answer(*two))
    asks = api.send(agent, "go", client_tools=[LIST_DIR])
    content = [{"type": "text", "text": "a picture"}, image]
    done = api.decide(agent, *[returned(call, content) for call in asks.waiting])
    assert done.stop == "end_turn"
    assert done.only("tool_return_message")["tool_returns"][0]["tool_return"] == content
    assert api.provider.refused == []
    for bad in ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}):  # fmt: skip
        assert api.send(agent, {"role": "user", "content": [bad]}).status == 422
    assert api.send(agent, "still there?").stop == "end_turn"
