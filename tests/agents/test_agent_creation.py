"""Agents created through the REST API: models, tools, rules, blocks, secrets, first messages, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, AgentVariable, Block, Conversation, Message
from tests.rest import UNKNOWN, get, names, new_agent, new_block, new_tool, post
from tests.tools.sources import ROLL_DICE, SECRET_CODE
from tools.models import Tool

pytestmark = pytest.mark.django_db

APPROVAL = {"tool_name": "get_secret_code_tool", "type": "requires_approval", "prompt_template": None}
AGENT_FIELDS = {
    *("created_by_id", "last_updated_by_id", "created_at", "updated_at", "id", "name", "tool_rules"),
    *("message_ids", "system", "agent_type", "llm_config", "embedding_config", "model", "embedding"),
    *("model_settings", "compaction_settings", "response_format", "description", "metadata", "memory"),
    *("blocks", "tools", "sources", "tags", "tool_exec_environment_variables", "secrets", "project_id"),
    *("template_id", "base_template_id", "deployment_id", "entity_id", "identity_ids", "identities"),
    *("pending_approval", "message_buffer_autoclear", "enable_sleeptime", "multi_agent_group"),
    *("managed_group", "last_run_completion", "last_run_duration_ms", "last_stop_reason", "timezone"),
    *("max_files_open", "per_file_view_window_char_limit", "hidden"),
}
LLM_FIELDS = {
    *("model", "display_name", "model_endpoint_type", "model_endpoint", "provider_name", "provider_category"),
    *("model_wrapper", "context_window", "put_inner_thoughts_in_kwargs", "handle", "temperature", "max_tokens"),
    *("enable_reasoner", "reasoning_effort", "max_reasoning_tokens", "effort", "frequency_penalty"),
    *("compatibility_type", "verbosity", "tier", "parallel_tool_calls", "response_format", "strict"),
    *("return_logprobs", "top_logprobs", "return_token_ids", "tool_call_parser"),
}
EMBEDDING_FIELDS = {
    *("embedding_endpoint_type", "embedding_endpoint", "embedding_model", "embedding_dim"),
    *("embedding_chunk_size", "handle", "batch_size", "azure_endpoint", "azure_version", "azure_deployment"),
}
VARIABLE_FIELDS = {
    *("created_by_id", "last_updated_by_id", "created_at", "updated_at", "id", "key", "value"),
    *("description", "organization_id", "value_enc", "agent_id"),
}


def test_it_answers_with_every_field() -> None:
    tool = new_tool(SECRET_CODE, default_requires_approval=True)
    body: dict[str, Any] = {
        "name": "billing",
        "agent_type": "letta_v1_agent",
        "tool_rules": [],
        "tool_ids": [tool["id"]],
        "include_base_tool_rules": False,
        "model": "anthropic/claude-sonnet-4-5-20250929",
        "embedding": "openai/text-embedding-3-small",
        "tags": ["t1", "t2", "t1"],
        "description": "d",
        "metadata": {"k": "v"},
        "memory_blocks": [{"label": "human", "value": "Name: Matt"}],
        "timezone": "UTC",
        "secrets": {"KEY": "s3cret"},
    }
    agent = new_agent(**body)
    assert agent.keys() == AGENT_FIELDS
    assert agent["llm_config"].keys() == LLM_FIELDS
    assert agent["embedding_config"].keys() == EMBEDDING_FIELDS
    assert agent["secrets"][0].keys() == VARIABLE_FIELDS
    assert agent["memory"].keys() == {"agent_type", "git_enabled", "blocks", "file_blocks", "prompt_template"}
    assert agent["tool_rules"] == [APPROVAL]
    assert agent["tools"] == [get(f"tools/{tool['id']}")]
    assert agent["tags"] == ["t1", "t2"]
    assert (agent["description"], agent["metadata"]) == ("d", {"k": "v"})
    assert [block["value"] for block in agent["blocks"]] == ["Name: Matt"]
    assert agent["memory"]["blocks"] == agent["blocks"]
    assert agent["embedding_config"]["embedding_dim"] == 1536
    assert agent["model_settings"]["provider_type"] == "anthropic"
    assert agent["created_at"].endswith("Z")
    assert get(f"agents/{agent['id']}") == agent


@pytest.mark.parametrize("path", ["agents", "agents/"])
def test_it_makes_a_first_system_message(path: str) -> None:
    agent = post(path, {"model": "demo/demo", "system": "Be brief."})
    rows = list(Message.objects.order_by("id"))
    assert [row.wire_id for row in rows] == agent["message_ids"]
    assert [row.role for row in rows] == ["system"]
    assert rows[0].parts[0]["text"].startswith("Be brief.")
    assert Conversation.objects.get().is_default


def test_it_boots_a_memgpt_agent() -> None:
    agent = post("agents/", {"model": "demo/demo", "agent_type": "memgpt_v2_agent"})
    assert [row.role for row in Message.objects.order_by("id")] == ["system", "assistant", "tool", "user"]
    assert len(agent["message_ids"]) == 4
    assert names(agent["tools"]) == ["send_message", "conversation_search", "memory_replace", "memory_insert"]
    kinds = {rule["tool_name"]: rule["type"] for rule in agent["tool_rules"]}
    assert kinds.pop("send_message") == "exit_loop"
    assert set(kinds.values()) == {"continue_loop"}


def test_it_begins_with_given_messages() -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yes?"}]}]
    agent = new_agent(agent_type="memgpt_agent", initial_message_sequence=said)
    rows = [(row.role, row.parts[0]["text"]) for row in Message.objects.order_by("id")[1:]]
    assert rows == [("user", "hi"), ("assistant", "yes?")]
    assert len(agent["message_ids"]) == 3
    assert len(new_agent(initial_message_sequence=[])["message_ids"]) == 1


def test_it_gives_base_tools_by_default() -> None:
    Tool.objects.all().delete()
    agent = post("agents/", {"model": "demo/demo"})
    assert set(names(agent["tools"])) == {"conversation_search", "memory_replace", "memory_insert"}
    assert agent["tool_rules"] == []
    assert agent["agent_type"] == "letta_v1_agent"
    assert agent["name"]


def test_it_takes_tools_by_name_and_id_once() -> None:
    dice, code = new_tool(ROLL_DICE), new_tool(SECRET_CODE)
    agent = new_agent(tools=["roll_dice_tool", "send_message"], tool_ids=[code["id"], dice["id"]])
    assert names(agent["tools"]) == ["roll_dice_tool", "send_message", "get_secret_code_tool"]


def test_it_keeps_each_rule_once() -> None:
    rule = {"tool_name": "a", "type": "exit_loop"}
    first = {"tool_name": "b", "type": "run_first", "args": {"x": 1}}
    agent = new_agent(tool_rules=[rule, first, {**rule, "prompt_template": None}])
    assert agent["tool_rules"] == [{**rule, "prompt_template": None}, {**first, "prompt_template": None}]


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"model": None}, 400, "INVALID_ARGUMENT: Must specify either model or llm_config in request"),
    ({"model": ""}, 400, "INVALID_ARGUMENT: Must specify either model or llm_config in request"),
    ({"model": "claude"}, 400, "INVALID_ARGUMENT: The model handle should be in the format provider/model-name"),
    ({"model": "/x"}, 400, "format provider/model-name"),
    ({"model": "anthropic/"}, 400, "format provider/model-name"),
    ({"model": "nope/none"}, 404, "NOT_FOUND: Handle nope/none not found, must be one of ["),
    ({"tool_ids": ["tool-" + UNKNOWN]}, 400, "Tools not found by id: tool-" + UNKNOWN),
    ({"tool_ids": ["tool-1"]}, 422, "tool-1"),
    ({"tools": ["nothing"]}, 400, "Tools not found by name: nothing"),
    ({"block_ids": ["block-" + UNKNOWN]}, 404, "block-" + UNKNOWN),
    ({"agent_type": "no_such_type"}, 422, "agent_type"),
    ({"tool_rules": [{"type": "nope", "tool_name": "a"}]}, 422, "tool_rules"),
    ({"tool_rules": [{"type": "exit_loop"}]}, 422, "tool_rules"),
    ({"memory_blocks": [{"label": "a", "value": "x"}, {"label": "a", "value": "y"}]}, 409, "'a'"),
    ({"memory_blocks": [{"label": "a", "value": "x" * 11, "limit": 10}]}, 422, "10"),
    ({"memory_blocks": [{"label": "a"}]}, 422, "memory_blocks"),
    ({"timezone": "Mars/Base"}, 422, "timezone"),
    ({"context_window_limit": 0}, 422, "context_window_limit"),
    ({"model_settings": {"temperature": 9}}, 422, "temperature"),
    ({"response_format": {"type": "xml"}}, 422, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, 422, "response_format.json_schema"),
    ({"compaction_settings": {"mode": "some"}}, 422, "compaction_settings.mode"),
    ({"compaction_settings": {"sliding_window_percentage": 2}}, 422, "sliding_window_percentage"),
    ({"name": "n" * 201}, 422, "name"),
    ({"tags": [{}]}, 422, "tags"),
    ({"secrets": {"A": {}}}, 422, "secrets"),
    ({"initial_message_sequence": [{"role": "tool", "content": "x"}]}, 422, "role"),
    ({"metadata": [1]}, 422, "metadata"),
]


@pytest.mark.parametrize(("fields", "status", "text"), REFUSED)
def test_it_refuses_and_stores_nothing(fields: dict[str, Any], status: int, text: str) -> None:
    body = {"model": "demo/demo", "include_base_tools": False, **fields}
    answer = post("agents/", body, expect=status)
    assert text in answer["detail"]
    assert not Agent.objects.exists()
    assert not Block.objects.exists()


def test_it_ignores_unknown_fields() -> None:
    assert new_agent(nonsense={"deep": [1]})["name"]


@pytest.mark.parametrize("model", ["anthropic/any-name-at-all", "openai/org/model:tag", "demo/demo"])
def test_it_takes_any_model_of_a_known_provider(model: str) -> None:
    agent = new_agent(model=model)
    assert (agent["model"], agent["llm_config"]["handle"]) == (model, model)
    assert agent["llm_config"]["model"] == model.partition("/")[2]
    assert agent["llm_config"]["context_window"] > 0


@pytest.mark.parametrize("embedding", [None, "openai/text-embedding-3-small", "letta/letta-free", "whatever"])
def test_it_never_checks_embeddings(embedding: str | None) -> None:
    agent = new_agent(embedding=embedding)
    assert agent["embedding"] == embedding
    assert (agent["embedding_config"] or {}).get("handle") == embedding
    assert (agent["embedding_config"] or {}).get("embedding_endpoint_type") in (None, "openai")


def test_it_cleans_texts_that_databases_refuse() -> None:
    agent = new_agent(name="a\x00b", description="\ud83d", metadata={"k\x00": "\udc00"}, tags=["t\x00"])
    assert (agent["name"], agent["description"]) == ("ab", "\ufffd")
    assert (agent["metadata"], agent["tags"]) == ({"k": "\ufffd"}, ["t"])


def test_it_attaches_a_shared_block() -> None:
    block = new_block("shared", "x")
    agent = new_agent(block_ids=[block["id"]], memory_blocks=[{"label": "own", "value": "y"}])
    assert [found["label"] for found in agent["blocks"]] == ["own", "shared"]
    new_agent(block_ids=[block["id"]], memory_blocks=[{"label": "shared", "value": "y"}], expect=409)


def test_it_seals_secrets() -> None:
    agent = new_agent(tool_exec_environment_variables={"A": "one"}, secrets={"B": "twö"})
    shown = {row["key"]: row["value"] for row in agent["secrets"]}
    assert shown == {"A": "one", "B": "twö"}
    assert agent["tool_exec_environment_variables"] == agent["secrets"]
    stored = AgentVariable.objects.values_list("value_enc", flat=True)
    assert all("one" not in value and "twö" not in value for value in stored)
