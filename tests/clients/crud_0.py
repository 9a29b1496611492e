"""Agents, tools, blocks and tags with letta-client 0.1.324: ``crud_0.py URL`` ends with 0 when all is well."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

from letta_client import CreateBlock, Letta
from letta_client.core.api_error import ApiError


def get_secret_code_tool(input_text: str) -> str:
    """
    A tool that returns the secret code based on the input. This tool requires approval before execution.
    Args:
        input_text (str): The input text to process.
    Returns:
        str: The secret code based on the input text.
    """
    return str(abs(hash(input_text)))


def tools_story(client: Any) -> Any:
    base = client.tools.upsert_base_tools()
    assert {"send_message", "memory_insert"} <= {tool.name for tool in base}
    tool = client.tools.upsert_from_function(func=get_secret_code_tool, default_requires_approval=True)
    assert client.tools.upsert_from_function(func=get_secret_code_tool).default_requires_approval is True
    assert tool.json_schema["parameters"]["required"] == ["input_text"]
    assert client.tools.retrieve(tool_id=tool.id).name == "get_secret_code_tool"
    assert client.tools.list(name="get_secret_code_tool")[0].id == tool.id
    assert client.tools.count(name="get_secret_code_tool") == 1
    assert client.tools.modify(tool_id=tool.id, tags=["x"]).tags == ["x"]
    ran = client.tools.run_tool_from_source(source_code=tool.source_code, args={"input_text": "x"})
    assert (ran.status, ran.tool_return.isdigit()) == ("success", True), ran
    return tool


def agent_story(client: Any, tool: Any) -> Any:
    agent = client.agents.create(
        name="crud0",
        agent_type="letta_v1_agent",
        include_base_tools=False,
        tool_ids=[tool.id],
        model="demo/demo",
        embedding="openai/text-embedding-3-small",
        tags=["crud0", "other"],
        memory_blocks=[CreateBlock(label="human", value="Matt")],
        tool_exec_environment_variables={"KEY": "value"},
    )
    assert [rule.type for rule in agent.tool_rules] == ["requires_approval"]
    assert agent.tool_exec_environment_variables[0].value == "value"
    assert client.agents.retrieve(agent_id=agent.id).memory.blocks[0].value == "Matt"
    assert [found.id for found in client.agents.list(tags=["crud0"], match_all_tags=True, limit=1)] == [agent.id]
    assert client.agents.count() >= 1
    assert "crud0" in client.tags.list()
    config = agent.llm_config.model_copy(update={"context_window": 9000})
    changed = client.agents.modify(agent_id=agent.id, name="renamed", llm_config=config)
    assert (changed.name, changed.llm_config.context_window) == ("renamed", 9000)
    assert client.agents.context.retrieve(agent_id=agent.id).context_window_size_max == 9000
    assert client.agents.messages.reset(agent_id=agent.id, add_default_initial_messages=True).id == agent.id
    return agent


def links_story(client: Any, agent: Any, tool: Any) -> None:
    off = client.agents.tools.modify_approval(agent.id, "get_secret_code_tool", requires_approval=False)
    assert off.tool_rules == []
    assert client.agents.tools.detach(agent_id=agent.id, tool_id=tool.id).tools == []
    attached = client.agents.tools.attach(agent_id=agent.id, tool_id=tool.id)
    assert [rule.type for rule in attached.tool_rules] == ["requires_approval"]
    assert [found.id for found in client.agents.tools.list(agent_id=agent.id)] == [tool.id]
    block = client.blocks.create(label="system/persona", value="calm")
    assert len(client.agents.blocks.attach(agent_id=agent.id, block_id=block.id).memory.blocks) == 2
    assert client.agents.blocks.retrieve(agent_id=agent.id, block_label="system/persona").value == "calm"
    assert client.agents.blocks.modify(agent_id=agent.id, block_label="human", value="Ann").value == "Ann"
    assert {found.label for found in client.agents.blocks.list(agent_id=agent.id)} == {"human", "system/persona"}
    assert client.agents.core_memory.retrieve(agent_id=agent.id).blocks[0].value == "Ann"
    assert [found.id for found in client.blocks.agents.list(block_id=block.id)] == [agent.id]
    assert client.blocks.modify(block_id=block.id, value="calmer").value == "calmer"
    assert client.blocks.list(label="system/persona")[0].id == block.id
    client.agents.blocks.detach(agent_id=agent.id, block_id=block.id)
    client.blocks.delete(block_id=block.id)


def file_story(client: Any, agent: Any) -> None:
    exported: Any = client.agents.export_file(agent_id=agent.id)
    text = exported if isinstance(exported, str) else json.dumps(exported)
    copies = client.agents.import_file(file=("agent.af", io.BytesIO(text.encode()), "application/json"))
    copy = client.agents.retrieve(agent_id=copies.agent_ids[0])
    assert copy.name == "renamed_copy"
    client.agents.delete(agent_id=copy.id)


def refusals(client: Any, agent_id: str) -> None:
    cases: list[tuple[int, Callable[[], Any]]] = [
        (404, lambda: client.agents.retrieve(agent_id=agent_id)),
        (422, lambda: client.agents.retrieve(agent_id="agent-1")),
        (400, lambda: client.tools.upsert(source_code="x = 1")),
        (404, lambda: client.agents.create(model="nope/none")),
        (422, lambda: client.blocks.create(label="a", value="xx", limit=1)),
    ]
    for status, refused in cases:
        assert status_of(refused) == status


def status_of(refused: Callable[[], Any]) -> int:
    """The status of the error that a call ends with; 200 when it does not."""
    try:
        refused()
    except ApiError as error:
        return int(error.status_code or 0)
    return 200


def main(url: str) -> None:
    client = Letta(base_url=url)
    tool = tools_story(client)
    agent = agent_story(client, tool)
    links_story(client, agent, tool)
    file_story(client, agent)
    client.agents.delete(agent_id=agent.id)
    client.tools.delete(tool_id=tool.id)
    refusals(client, agent.id)


if __name__ == "__main__":
    main(sys.argv[1])
