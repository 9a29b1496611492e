"""Agents out into a file and in from one: a round trip, overrides, refusals."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from agents.models import Agent, Block, Message, MessageContext, MessageRole
from tests.agents import factories as make
from tests.rest import CLIENT, get, names, new_agent, new_tool, post, put
from tests.tools.sources import ROLL_DICE, SECRET_CODE
from tools.models import Tool

pytestmark = pytest.mark.django_db

FILE_FIELDS = {
    *("agents", "groups", "blocks", "files", "sources", "tools", "mcp_servers", "skills", "metadata", "created_at"),
}
AGENT_FIELDS = {
    *("name", "memory_blocks", "tools", "tool_ids", "source_ids", "folder_ids", "block_ids", "tool_rules", "tags"),
    *("system", "agent_type", "initial_message_sequence", "include_base_tools", "include_multi_agent_tools"),
    *("include_base_tool_rules", "include_default_source", "description", "metadata", "llm_config"),
    *("embedding_config", "model", "embedding", "model_settings", "compaction_settings", "context_window_limit"),
    *("embedding_chunk_size", "max_tokens", "max_reasoning_tokens", "enable_reasoner", "reasoning"),
    *("from_template", "template", "project", "tool_exec_environment_variables", "secrets", "memory_variables"),
    *("project_id", "template_id", "base_template_id", "identity_ids", "message_buffer_autoclear"),
    *("enable_sleeptime", "response_format", "timezone", "max_files_open", "per_file_view_window_char_limit"),
    *("hidden", "parallel_tool_calls", "id", "in_context_message_ids", "messages", "files_agents", "group_ids"),
}
MESSAGE_FIELDS = {
    *("type", "otid", "group_id", "role", "content", "name", "sender_id", "batch_item_id", "id", "model"),
    *("agent_id", "tool_calls", "tool_call_id", "tool_returns", "created_at", "approve", "approval_request_id"),
    *("denial_reason", "approvals"),
}


def upload(content: Any, *, expect: int = 200, **form: Any) -> Any:
    """The answer to an import of ``content`` (bytes or JSON)."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = io.BytesIO(data)
    file.name = "agent.af"
    response = CLIENT.post("/v1/agents/import", {"file": file, **form}, format="multipart")
    assert response.status_code == expect, response.content
    return response.json()


def imported(content: Any, **form: Any) -> Any:
    ids = upload(content, **form)["agent_ids"]
    assert len(ids) == 1
    return get(f"agents/{ids[0]}")


def comparable(file: dict[str, Any]) -> dict[str, Any]:
    """``file`` without moments and without the prompt, which names its agent."""
    agents = [{**agent, "messages": agent["messages"][1:]} for agent in file["agents"]]
    tools = [{**tool, "updated_at": None} for tool in file["tools"]]
    return {**file, "created_at": None, "agents": agents, "tools": tools}


@pytest.fixture
def agent() -> Any:
    """An agent with a bit of everything and a history with a gated call."""
    code, _ = new_tool(SECRET_CODE, default_requires_approval=True), new_tool(ROLL_DICE)
    made = new_agent(
        name="billing",
        model="anthropic/claude-sonnet-4-5",
        tool_ids=[code["id"]],
        tools=["send_message", "roll_dice_tool"],
        tags=["a", "b"],
        tool_rules=[{"tool_name": "roll_dice_tool", "type": "max_count_per_step", "max_count_limit": 2}],
        memory_blocks=[{"label": "human", "value": "Matt", "limit": 50, "tags": ["x"]}],
        secrets={"KEY": "s3cret"},
        model_settings={"temperature": 0.5},
        metadata={"k": [1]},
        description="d",
    )
    conversation = make.default_of(Agent.objects.get())
    make.make_message(conversation, "gone", context=MessageContext.OUT, otid="o1")
    make.make_message(conversation, "roll", name="matt")
    thought = {"type": "reasoning", "text": "hm", "signature": "sig", "provider": "anthropic"}
    call = {"type": "call", "id": "c1", "name": "roll_dice_tool", "arguments": '{"num_sides": 4}', "gated": True}
    make.make_message(conversation, role=MessageRole.ASSISTANT, parts=[thought, {"type": "text", "text": "so"}, call])
    sent = {"type": "approval", "approve": True, "tool_call_id": "c1", "reason": None}
    make.make_message(conversation, role=MessageRole.APPROVAL, parts=[{"type": "decision", "sent": sent}])
    result = {**make.result_part("c1", "roll_dice_tool", "4"), "content": None, "stdout": ["x"], "stderr": []}
    make.make_message(conversation, role=MessageRole.TOOL, parts=[result], name="roll_dice_tool")
    return made


def test_it_exports_every_field_and_no_secret(agent: Any) -> None:
    file = get(f"agents/{agent['id']}/export")
    assert file.keys() == FILE_FIELDS
    assert file["agents"][0].keys() == AGENT_FIELDS
    assert {frozenset(message) for message in file["agents"][0]["messages"]} == {frozenset(MESSAGE_FIELDS)}
    assert "s3cret" not in json.dumps(file)
    assert file["agents"][0]["secrets"] == {"KEY": ""}
    shown = file["agents"][0]["messages"]
    assert [message["role"] for message in shown] == ["system", "user", "user", "approval", "approval", "tool"]
    assert [message["tool_call_id"] for message in shown[3:]] == ["c1", None, "c1"]
    assert len(file["agents"][0]["in_context_message_ids"]) == 5
    assert comparable(post(f"agents/{agent['id']}/export")) == comparable(file)


def test_it_makes_the_same_agent_from_its_file(agent: Any) -> None:
    file = get(f"agents/{agent['id']}/export")
    copy = imported(file, append_copy_suffix="false", env_vars_json='{"KEY": "new"}')
    assert copy["id"] != agent["id"]
    assert [block["id"] for block in copy["blocks"]] != [block["id"] for block in agent["blocks"]]
    assert [tool["id"] for tool in copy["tools"]] == [tool["id"] for tool in agent["tools"]]
    assert [row["value"] for row in copy["secrets"]] == ["new"]
    again = get(f"agents/{copy['id']}/export")
    assert comparable(again) == comparable(file)
    one, two = (list(Message.objects.filter(agent__uuid=wire["id"][6:]).order_by("id")) for wire in (agent, copy))
    assert [row.parts for row in one[1:]] == [row.parts for row in two[1:]]
    assert [row.search_text for row in one[2:3]] == [row.search_text for row in two[2:3]] == ["roll"]


OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"name": "billing_copy"}),
    ({"append_copy_suffix": "false"}, {"name": "billing"}),
    ({"override_name": "other"}, {"name": "other"}),
    ({"name": "other"}, {"name": "other"}),
    ({"override_model_handle": "openai/gpt-4o"}, {"model": "openai/gpt-4o"}),
    ({"model": "openai/gpt-4o"}, {"model": "openai/gpt-4o"}),
    ({"override_embedding_handle": "openai/x"}, {"embedding": "openai/x"}),
    ({"project_id": "p"}, {"project_id": "p"}),
]


@pytest.mark.parametrize(("form", "shown"), OPTIONS)
def test_it_takes_overrides(agent: Any, form: dict[str, Any], shown: dict[str, Any]) -> None:
    copy = imported(get(f"agents/{agent['id']}/export"), **form)
    assert {name: copy[name] for name in shown} == shown
    assert copy["llm_config"]["handle"] == copy["model"]


def test_it_strips_messages(agent: Any) -> None:
    file = get(f"agents/{agent['id']}/export")
    assert len(imported(file, strip_messages="true")["message_ids"]) == 1
    scrubbed = get(f"agents/{agent['id']}/export", scrub_messages=True)
    assert scrubbed["agents"][0]["messages"] == []


def test_it_replaces_tools_only_when_told(agent: Any) -> None:
    file = get(f"agents/{agent['id']}/export")
    changed = SECRET_CODE.replace("code-", "other-")
    put("tools/", {"source_code": changed, "default_requires_approval": False})
    imported(file, override_existing_tools="false")
    assert Tool.objects.get(name="get_secret_code_tool").source_code == changed
    imported(file, override_existing_tools="true")
    assert Tool.objects.get(name="get_secret_code_tool").source_code == SECRET_CODE


def test_it_leaves_out_built_in_tools_of_another_server(agent: Any) -> None:
    file = get(f"agents/{agent['id']}/export")
    foreign = {"id": "tool-9", "name": "archival_memory_search", "tool_type": "letta_core", "source_code": None}
    file["tools"].append(foreign)
    file["agents"][0]["tool_ids"].append("tool-9")
    file["agents"][0]["tool_rules"].append({"tool_name": "archival_memory_search", "type": "continue_loop"})
    copy = imported(file)
    assert names(copy["tools"]) == names(agent["tools"])
    assert {rule["tool_name"] for rule in copy["tool_rules"]} == {"roll_dice_tool", "get_secret_code_tool"}


def broken(change: Any) -> dict[str, Any]:
    """A minimal file, changed."""
    file: dict[str, Any] = {"agents": [{"id": "agent-0", "name": "x", "model": "demo/demo"}], "tools": [], "blocks": []}
    change(file)
    return file


BROKEN: list[tuple[Any, int]] = [
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[]", 400),
    (b'{"agent_type": "memgpt_agent", "core_memory": []}', 400),
    (broken(lambda file: file.update(agents=[])), 422),
    (broken(lambda file: file["agents"][0].update(tool_ids=["tool-7"])), 400),
    (broken(lambda file: file["agents"][0].update(block_ids=["block-7"])), 400),
    (broken(lambda file: file["agents"][0].update(model="nope/none")), 404),
    (broken(lambda file: file["agents"][0].update(model=None)), 400),
    (broken(lambda file: file["agents"][0].update(messages=[{"id": "m", "role": "nobody"}])), 422),
    (broken(lambda file: file["agents"][0].update(messages=[7])), 422),
    (broken(lambda file: file["tools"].append({"id": "tool-0", "name": "x", "tool_type": "external_mcp"})), 400),
    (broken(lambda file: file["agents"].append({"id": "agent-1", "model": "nope/none"})), 404),
]


@pytest.mark.parametrize(("content", "status"), BROKEN)
def test_it_refuses_a_broken_file_and_makes_nothing(content: Any, status: int) -> None:
    assert upload(content, expect=status)["detail"]
    assert not Agent.objects.exists()
    assert not Block.objects.exists()


def test_a_failed_import_leaves_the_tools_as_they_were() -> None:
    put("tools/", {"source_code": SECRET_CODE, "default_requires_approval": True, "tags": ["mine"]})
    before = list(Tool.objects.values())
    sources = {"get_secret_code_tool": SECRET_CODE.replace("code-", "other-"), "roll_dice_tool": ROLL_DICE}
    tools: list[Any] = [{"id": f"tool-{name}", "name": name, "source_code": code} for name, code in sources.items()]
    tools.append({"id": "tool-again", "name": "get_secret_code_tool", "source_code": SECRET_CODE, "tags": ["theirs"]})
    fine = {"id": "agent-0", "model": "demo/demo", "tool_ids": [tool["id"] for tool in tools]}
    file = {"agents": [fine, {"id": "agent-1", "model": "nope/none"}], "tools": tools, "blocks": []}
    upload(file, expect=404, override_existing_tools="true")
    after = list(Tool.objects.values())
    assert [{**tool, "updated_at": None} for tool in after] == [{**tool, "updated_at": None} for tool in before]


def test_it_checks_the_limits_of_blocks() -> None:
    block = {"id": "block-0", "label": "human", "value": "x" * 11, "limit": 10}
    file = broken(lambda file: (file["blocks"].append(block), file["agents"][0].update(block_ids=["block-0"])))
    assert "holds at most 10" in upload(file, expect=422)["detail"]


def test_it_shares_a_block_between_agents_of_a_file() -> None:
    block = {"id": "block-0", "label": "shared", "value": "x"}
    entry = {"model": "demo/demo", "block_ids": ["block-0"]}
    ids = upload({"agents": [{**entry, "id": f"agent-{n}"} for n in range(2)], "blocks": [block]})["agent_ids"]
    assert len({get(f"agents/{wire}")["blocks"][0]["id"] for wire in ids}) == 1


ROLES = ["system", "user", "assistant", "tool", "assistant", "approval", "user", "summary"]


def test_it_reads_odd_messages() -> None:
    odd: list[dict[str, Any]] = [
        {"id": "m0", "role": "system", "content": "old prompt"},
        {"id": "m1", "role": "user", "content": "plain"},
        {"id": "m2", "role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}, 7]},
        {"id": "m3", "role": "tool", "content": [{"type": "text", "text": "r"}], "tool_call_id": "c"},
        {"id": "m4", "role": "approval", "tool_calls": [{"id": "d", "function": {"name": "g", "arguments": "{}"}}]},
        {"id": "m5", "role": "approval", "approve": False, "denial_reason": "no"},
        {"id": "m6", "role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}, 1]},
        {"id": "m7", "role": "summary", "content": [{"type": "nonsense"}]},
    ]
    file = broken(lambda file: file["agents"][0].update(messages=odd, in_context_message_ids=["m1", "m3"]))
    shown = imported(file)
    rows = list(Message.objects.order_by("id"))
    assert [row.role for row in rows] == ROLES
    assert [part["name"] for part in rows[3].parts] == ["f"]
    assert rows[4].parts[0]["gated"] is True
    assert [row.context for row in rows] == [1, 1, 0, 1, 0, 0, 0, 0]
    assert len(shown["message_ids"]) == 3
    assert get(f"agents/{shown['id']}/messages")


@pytest.mark.parametrize("form", [{"append_copy_suffix": "perhaps"}, {"env_vars_json": "["}, {"secrets": '{"a": 1}'}])
def test_it_refuses_a_bad_form(form: dict[str, Any]) -> None:
    upload(broken(lambda file: None), expect=422, **form)


def test_it_wants_a_file() -> None:
    response = CLIENT.post("/v1/agents/import/", {"file": "text"}, format="multipart")
    assert response.status_code == 422
    assert CLIENT.post("/v1/agents/import", {}, format="multipart").status_code == 422
    assert CLIENT.post("/v1/agents/import", {}, format="json").status_code == 415


def test_it_has_no_legacy_format(agent: Any) -> None:
    assert "legacy" in get(f"agents/{agent['id']}/export", expect=400, use_legacy_format=True)["detail"]
