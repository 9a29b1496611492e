"""Agents changed through the REST API: every field, the model said in three ways, messages in context."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, Message, MessageContext
from tests.agents import factories as make
from tests.rest import UNKNOWN, get, new_agent, new_block, new_tool, patch
from tests.tools.sources import ROLL_DICE, SECRET_CODE

pytestmark = pytest.mark.django_db

MODEL = "anthropic/claude-sonnet-4-5-20250929"

CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "renamed"}, {"name": "renamed"}),
    ({"name": None}, {"name": "before"}),
    ({"tags": ["t3"]}, {"tags": ["t3"]}),
    ({"tags": []}, {"tags": []}),
    ({"system": "New prompt."}, {"system": "New prompt."}),
    ({"description": "d"}, {"description": "d"}),
    ({"metadata": {"a": [1, {"b": None}]}}, {"metadata": {"a": [1, {"b": None}]}}),
    ({"timezone": "Europe/Berlin"}, {"timezone": "Europe/Berlin"}),
    ({"hidden": True}, {"hidden": True}),
    ({"message_buffer_autoclear": True}, {"message_buffer_autoclear": True}),
    ({"enable_sleeptime": False}, {"enable_sleeptime": False}),
    ({"max_files_open": 3}, {"max_files_open": 3}),
    ({"identity_ids": ["identity-1"]}, {"identity_ids": ["identity-1"]}),
    ({"project_id": "p", "template_id": "t"}, {"project_id": "p", "template_id": "t"}),
    (
        {"last_stop_reason": "error", "last_run_duration_ms": 5},
        {"last_stop_reason": "error", "last_run_duration_ms": 5},
    ),
    ({"embedding": "openai/text-embedding-3-large"}, {"embedding": "openai/text-embedding-3-large"}),
    ({"tool_rules": []}, {"tool_rules": []}),
    ({"nonsense": 1}, {"name": "before"}),
]


@pytest.mark.parametrize(("sent", "shown"), CHANGES)
def test_it_changes_what_is_sent_and_nothing_else(sent: dict[str, Any], shown: dict[str, Any]) -> None:
    rules = [{"tool_name": "x", "type": "exit_loop", "prompt_template": None}]
    before = new_agent(name="before", tags=["t1"], secrets={"K": "v"}, tool_rules=rules)
    after = patch(f"agents/{before['id']}", sent)
    assert {name: after[name] for name in shown} == shown
    touched = {*shown, "updated_at", "embedding_config"}
    assert {name: value for name, value in after.items() if name not in touched} == {
        name: value for name, value in before.items() if name not in touched
    }
    assert get(f"agents/{before['id']}/") == after


MODELS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"parallel_tool_calls": True}, {"parallel_tool_calls": True}, {"parallel_tool_calls": True}),
    ({"model_settings": {"parallel_tool_calls": True}}, {"parallel_tool_calls": True}, {"parallel_tool_calls": True}),
    ({"model_settings": {"max_output_tokens": 99}}, {"max_tokens": 99}, {"max_output_tokens": 99}),
    ({"max_tokens": 77}, {"max_tokens": 77}, {"max_output_tokens": 77}),
    ({"context_window_limit": 5000}, {"context_window": 5000}, {}),
    ({"model_settings": {"temperature": 0.2}}, {"temperature": 0.2}, {"temperature": 0.2}),
    (
        {"reasoning": False},
        {"enable_reasoner": False, "max_reasoning_tokens": 0},
        {"thinking": {"type": "disabled", "budget_tokens": 1024}},
    ),
    (
        {"model_settings": {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
        {"enable_reasoner": True, "max_reasoning_tokens": 2048},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    (
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}},
    ),
    ({"model_settings": {"provider_type": "anthropic", "odd": [1]}}, {}, {"odd": [1], "provider_type": "anthropic"}),
]


@pytest.mark.parametrize(("sent", "config", "said"), MODELS)
@pytest.mark.parametrize("when", ["created", "changed"])
def test_it_keeps_the_three_ways_to_say_it_in_step(
    sent: dict[str, Any], config: dict[str, Any], said: dict[str, Any], when: str
) -> None:
    if when == "created":
        agent = new_agent(model=MODEL, **sent)
    else:
        agent = patch(f"agents/{new_agent(model=MODEL)['id']}", sent)
    assert {name: agent["llm_config"][name] for name in config} == config
    assert {name: agent["model_settings"][name] for name in said} == said
    assert agent["model"] == MODEL


def test_it_takes_its_own_llm_config_back() -> None:
    """A full dump with one change, as the older SDK sends it: what was never set stays unset."""
    agent = new_agent(model=MODEL)
    dump = {**agent["llm_config"], "parallel_tool_calls": True, "unknown_key": {"x": 1}}
    after = patch(f"agents/{agent['id']}", {"llm_config": dump})
    assert after["llm_config"] == dump
    assert after["model_settings"]["parallel_tool_calls"] is True
    stored = Agent.objects.get().llm_config
    assert stored.keys().isdisjoint({"temperature", "enable_reasoner", "max_reasoning_tokens"})
    again = patch(f"agents/{agent['id']}", {"model_settings": after["model_settings"]})
    assert again["llm_config"] == dump
    assert Agent.objects.get().llm_config == stored


def test_it_changes_the_model_by_handle_and_by_config() -> None:
    agent = new_agent(model=MODEL, parallel_tool_calls=True)
    after = patch(f"agents/{agent['id']}", {"model": "openai/gpt-4o"})
    assert (after["model"], after["llm_config"]["model_endpoint_type"]) == ("openai/gpt-4o", "openai")
    assert after["llm_config"]["parallel_tool_calls"] is True
    assert after["model_settings"]["reasoning"] == {"reasoning_effort": "minimal"}
    dump = {**after["llm_config"], "model": "gpt-4o-mini"}
    assert patch(f"agents/{agent['id']}", {"llm_config": dump})["model"] == "openai/gpt-4o-mini"
    patch(f"agents/{agent['id']}", {"model": "nope/none"}, expect=404)
    patch(f"agents/{agent['id']}", {"model": "gpt"}, expect=400)
    assert get(f"agents/{agent['id']}")["model"] == "openai/gpt-4o-mini"


def test_it_replaces_tools_with_their_rules() -> None:
    code, dice = new_tool(SECRET_CODE, default_requires_approval=True), new_tool(ROLL_DICE)
    agent = new_agent(tool_ids=[code["id"]])
    after = patch(f"agents/{agent['id']}", {"tool_ids": [dice["id"]]})
    assert [tool["name"] for tool in after["tools"]] == ["roll_dice_tool"]
    assert after["tool_rules"] == []
    back = patch(f"agents/{agent['id']}", {"tool_ids": [dice["id"], code["id"]]})
    assert [rule["type"] for rule in back["tool_rules"]] == ["requires_approval"]
    patch(f"agents/{agent['id']}", {"tool_ids": ["tool-" + UNKNOWN]}, expect=400)
    assert get(f"agents/{agent['id']}") == back


def test_it_replaces_blocks_and_secrets() -> None:
    one, two = new_block("one"), new_block("two")
    agent = new_agent(block_ids=[one["id"]], secrets={"A": "1", "B": "2"})
    after = patch(f"agents/{agent['id']}", {"block_ids": [two["id"]], "secrets": {"B": "3"}})
    assert [block["label"] for block in after["blocks"]] == ["two"]
    assert [(row["key"], row["value"]) for row in after["secrets"]] == [("B", "3")]
    assert after["secrets"][0]["id"] == agent["secrets"][1]["id"]
    assert patch(f"agents/{agent['id']}", {"secrets": {}})["secrets"] == []


def test_it_changes_which_messages_are_in_context() -> None:
    agent = new_agent()
    row = Agent.objects.get()
    said = make.make_messages(make.default_of(row), 3)
    ids = [message.wire_id for message in said]
    after = patch(f"agents/{agent['id']}", {"message_ids": [ids[2], ids[0]]})
    assert after["message_ids"] == [*agent["message_ids"], ids[0], ids[2]]
    assert Message.objects.get(pk=said[1].pk).context == MessageContext.OUT
    assert (
        "message-" + UNKNOWN
        in patch(f"agents/{agent['id']}", {"message_ids": ["message-" + UNKNOWN]}, expect=400)["detail"]
    )
    patch(f"agents/{agent['id']}", {"message_ids": ["x"]}, expect=422)


@pytest.mark.parametrize("wire", ["agent-1", "x", "tool-" + UNKNOWN, "AGENT-" + UNKNOWN])
def test_it_refuses_malformed_ids(wire: str) -> None:
    for path in ("", "/context", "/tools", "/core-memory", "/core-memory/blocks", "/core-memory/blocks/human"):
        get(f"agents/{wire}{path}", expect=422)
    patch(f"agents/{wire}", {}, expect=422)


def test_it_says_that_an_agent_is_unknown() -> None:
    wire = f"agent-{UNKNOWN}"
    for path in ("", "/context", "/tools", "/core-memory", "/core-memory/blocks", "/core-memory/blocks/human"):
        assert get(f"agents/{wire}{path}", expect=404) == {"detail": f"Agent with ID {wire} not found"}
    patch(f"agents/{wire}", {"name": "x"}, expect=404)
