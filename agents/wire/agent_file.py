"""An agent as a file: everything that another server needs to make the same one, and no secret.

Ids in a file are its own (``agent-0``, ``tool-1``): they tie its parts together and mean nothing outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from agents.models import Agent, AgentTag, Message, MessageContext
from agents.wire.belongings import belongings
from agents.wire.blocks import block_state
from agents.wire.internal import internal_message
from agents.wire.llm import llm_config_state, model_settings_state
from tools.wire import moment, tool_state

Wire = dict[str, Any]

_OF_MESSAGES = (
    *("otid", "group_id", "role", "content", "name", "sender_id", "batch_item_id", "model", "tool_calls"),
    *("tool_call_id", "tool_returns", "created_at", "approve", "approval_request_id", "denial_reason", "approvals"),
)
_NOT_OURS: Wire = {
    **dict.fromkeys(("source_ids", "folder_ids", "initial_message_sequence", "from_template", "project")),
    **dict.fromkeys(("project_id", "template_id", "base_template_id", "identity_ids")),
    **dict.fromkeys(("include_base_tools", "include_multi_agent_tools", "include_base_tool_rules"), False),
    **dict.fromkeys(("include_default_source", "template"), False),
    "files_agents": [],
    "group_ids": [],
}
"""Fields of an agent in a file that say nothing here: all that it has is named in the others."""


def agent_file(agent: Agent, messages: Iterable[Message]) -> Wire:
    """The AgentFileSchema of one agent with ``messages`` (oldest first) as its history."""
    found = belongings([agent.pk])
    tools, blocks = found.tools[agent.pk], found.blocks[agent.pk]
    exported = _agent(agent, messages)
    exported["tool_ids"] = [f"tool-{place}" for place in range(len(tools))]
    exported["block_ids"] = [f"block-{place}" for place in range(len(blocks))]
    return {
        "agents": [exported],
        "groups": [],
        "blocks": [{**block_state(block), "id": f"block-{place}"} for place, block in enumerate(blocks)],
        "files": [],
        "sources": [],
        "tools": [{**tool_state(tool), "id": f"tool-{place}"} for place, tool in enumerate(tools)],
        "mcp_servers": [],
        "skills": [],
        "metadata": {"server": "lettaweb"},
        "created_at": moment(datetime.now(UTC)),
    }


def _agent(agent: Agent, messages: Iterable[Message]) -> Wire:
    extra = agent.extra or {}
    history, in_context = _history(messages)
    keys = {variable.key: "" for variable in agent.variables.order_by("id")}
    return {
        **_NOT_OURS,
        "id": "agent-0",
        "name": agent.name,
        "memory_blocks": [],
        "tools": [],
        "tool_rules": agent.tool_rules,
        "tags": list(AgentTag.objects.filter(agent=agent).order_by("id").values_list("tag", flat=True)),
        "system": agent.system,
        "agent_type": agent.agent_type,
        "description": agent.description,
        "metadata": agent.metadata,
        **_model(agent),
        "tool_exec_environment_variables": keys,
        "secrets": keys,
        "memory_variables": extra.get("memory_variables"),
        "message_buffer_autoclear": agent.message_buffer_autoclear,
        "enable_sleeptime": extra.get("enable_sleeptime"),
        "timezone": agent.timezone,
        "max_files_open": extra.get("max_files_open"),
        "per_file_view_window_char_limit": extra.get("per_file_view_window_char_limit"),
        "hidden": agent.hidden,
        "in_context_message_ids": in_context,
        "messages": history,
    }


def _model(agent: Agent) -> Wire:
    config = llm_config_state(agent.llm_config)
    return {
        "llm_config": config,
        "embedding_config": agent.embedding_config,
        "model": agent.model,
        "embedding": agent.embedding,
        "model_settings": model_settings_state(agent.llm_config, agent.model_settings or {}),
        "compaction_settings": agent.compaction_settings,
        "context_window_limit": config["context_window"],
        "embedding_chunk_size": (agent.embedding_config or {}).get("embedding_chunk_size"),
        "max_tokens": config["max_tokens"],
        "max_reasoning_tokens": agent.llm_config.get("max_reasoning_tokens"),
        "enable_reasoner": agent.llm_config.get("enable_reasoner"),
        "reasoning": agent.llm_config.get("enable_reasoner"),
        "response_format": agent.response_format,
        "parallel_tool_calls": bool(config["parallel_tool_calls"]),
    }


def _history(messages: Iterable[Message]) -> tuple[list[Wire], Sequence[str]]:
    history: list[Wire] = []
    in_context: list[str] = []
    for place, message in enumerate(messages):
        whole = internal_message(message)
        kept = {name: whole[name] for name in _OF_MESSAGES}
        history.append({"type": "message", "id": f"message-{place}", "agent_id": "agent-0", **kept})
        if message.context != MessageContext.OUT:
            in_context.append(f"message-{place}")
    return history, in_context
