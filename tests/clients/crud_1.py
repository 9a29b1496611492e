"""Agents, tools, blocks and tags with letta-client 1.12.1: ``crud_1.py URL`` ends with 0 when all is well.

The client checks every answer against its own models.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import letta_client
from letta_client import Letta

SOURCE = '''def get_secret_code_tool(input_text: str) -> str:
    """
    Gives the code of a text.
    Args:
        input_text (str): Any text.
    """
    return "code-" + str(len(input_text))
'''


def tools_story(client: Any) -> Any:
    tool = client.tools.upsert(source_code=SOURCE, default_requires_approval=True)
    assert client.tools.create(source_code=SOURCE).id == tool.id
    assert client.tools.retrieve(tool.id).default_requires_approval is True
    assert [found.id for found in client.tools.list(name="get_secret_code_tool").items] == [tool.id]
    assert client.tools.update(tool.id, tags=["x"]).tags == ["x"]
    assert [found.tool.id for found in client.tools.search(query="secret_code")] == [tool.id]
    return tool


def agent_story(client: Any, tool: Any) -> Any:
    agent = client.agents.create(
        name="crud1",
        agent_type="letta_v1_agent",
        include_base_tools=False,
        tool_ids=[tool.id],
        model="demo/demo",
        tags=["crud1"],
        memory_blocks=[{"label": "human", "value": "Matt"}],
        secrets={"KEY": "value"},
        parallel_tool_calls=True,
    )
    assert agent.api_model_settings.parallel_tool_calls is True
    assert agent.secrets[0].value == "value"
    assert client.agents.retrieve(agent.id, include=["agent.tools", "agent.tags"]).tags == ["crud1"]
    assert [found.id for found in client.agents.list(tags=["crud1"])] == [agent.id]
    assert "crud1" in client.tags.list()
    changed = client.agents.update(agent.id, name="renamed", model="openai/gpt-4o", context_window_limit=9000)
    assert (changed.model, changed.llm_config.context_window) == ("openai/gpt-4o", 9000)
    assert client.agents.messages.reset(agent.id, add_default_initial_messages=False).id == agent.id
    assert "Matt" in client.agents.recompile(agent.id)
    return agent


def links_story(client: Any, agent: Any, tool: Any) -> None:
    off = client.agents.tools.update_approval("get_secret_code_tool", agent_id=agent.id, body_requires_approval=False)
    assert off.tool_rules == []
    assert client.agents.tools.detach(tool.id, agent_id=agent.id).tools == []
    assert [rule.type for rule in client.agents.tools.attach(tool.id, agent_id=agent.id).tool_rules] == [
        "requires_approval"
    ]
    assert [found.id for found in client.agents.tools.list(agent.id)] == [tool.id]
    ran = client.agents.tools.run("get_secret_code_tool", agent_id=agent.id, args={"input_text": "abc"})
    assert (ran.status, ran.func_return) == ("success", "code-3"), ran
    block = client.blocks.create(label="system/persona", value="calm", tags=["t"])
    assert len(client.agents.blocks.attach(block.id, agent_id=agent.id).blocks) == 2
    assert client.agents.blocks.retrieve("system/persona", agent_id=agent.id).value == "calm"
    assert client.agents.blocks.update("human", agent_id=agent.id, value="Ann").value == "Ann"
    assert {found.label for found in client.agents.blocks.list(agent.id)} == {"human", "system/persona"}
    assert [found.id for found in client.blocks.agents.list(block.id)] == [agent.id]
    assert client.blocks.update(block.id, value="calmer").value == "calmer"
    assert [found.id for found in client.blocks.list(tags=["t"])] == [block.id]
    client.agents.blocks.detach(block.id, agent_id=agent.id)
    client.blocks.delete(block.id)


def file_story(client: Any, agent: Any) -> None:
    exported: Any = client.agents.export_file(agent.id)
    text = exported if isinstance(exported, str) else json.dumps(exported)
    copies = client.agents.import_file(file=("agent.af", io.BytesIO(text.encode())), override_name="copied")
    copy = client.agents.retrieve(copies.agent_ids[0])
    assert (copy.name, copy.blocks[0].value) == ("copied", "Ann")
    client.agents.delete(copy.id)


def pages(client: Any) -> None:
    made = [client.agents.create(model="demo/demo", name=f"p{n}", tags=["pages"]).id for n in range(5)]
    walked = [agent.id for agent in client.agents.list(tags=["pages"], limit=2)]
    assert walked == made[::-1], (walked, made)
    for agent_id in made:
        client.agents.delete(agent_id)


def refusals(client: Any, agent_id: str) -> None:
    cases: list[tuple[Any, Callable[[], Any]]] = [
        (letta_client.NotFoundError, lambda: client.agents.retrieve(agent_id)),
        (letta_client.UnprocessableEntityError, lambda: client.agents.retrieve("agent-1")),
        (letta_client.BadRequestError, lambda: client.tools.upsert(source_code="x = 1")),
        (letta_client.NotFoundError, lambda: client.agents.create(model="nope/none")),
        (letta_client.BadRequestError, lambda: client.agents.create(name="x")),
    ]
    for kind, refused in cases:
        try:
            refused()
        except kind:
            continue
        raise AssertionError(kind)


def main(url: str) -> None:
    client = Letta(base_url=url, api_key="any", max_retries=0, _strict_response_validation=True)
    tool = tools_story(client)
    agent = agent_story(client, tool)
    links_story(client, agent, tool)
    file_story(client, agent)
    pages(client)
    client.agents.delete(agent.id)
    client.tools.delete(tool.id)
    refusals(client, agent.id)


if __name__ == "__main__":
    main(sys.argv[1])
