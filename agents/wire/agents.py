"""Agents as the wire writes them, with everything that belongs to them, in a bounded number of reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.models import Agent
from agents.wire.belongings import Belongings, belongings
from agents.wire.blocks import block_state, memory_state
from agents.wire.llm import llm_config_state, model_settings_state
from agents.wire.variables import variable_state
from tools.models import Row
from tools.wire import SYSTEM_USER, moment, tool_state

Wire = dict[str, Any]

COMPACTION: Mapping[str, Any] = {
    "model": None,
    "model_settings": None,
    "prompt": None,
    "prompt_acknowledgement": False,
    "clip_chars": 50_000,
    "mode": "sliding_window",
    "sliding_window_percentage": 0.3,
}


def agent_state(agent: Agent, *, reveal: bool) -> Wire:
    """One agent; see :func:`agent_states`."""
    return agent_states([agent], reveal=reveal)[0]


def agent_states(agents: Sequence[Agent], *, reveal: bool) -> list[Wire]:
    """Agents with every field that either SDK knows and all their relationships.

    ``reveal``: show the values of their secrets. Nine reads for a page, however many agents are on it.
    """
    found = belongings([agent.pk for agent in agents])
    shown = _Shown(tools=_states(tool_state, found.tools), blocks=_states(block_state, found.blocks))
    return [_state(agent, found, shown, reveal=reveal) for agent in agents]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What agents share, written once: states of tools and blocks by primary key."""

    tools: Mapping[int, Wire]
    blocks: Mapping[int, Wire]


def _states(state: Callable[[Any], Wire], owned: Mapping[int, Sequence[Row]]) -> dict[int, Wire]:
    distinct = {row.pk: row for rows in owned.values() for row in rows}
    return {pk: state(row) for pk, row in distinct.items()}


def _state(agent: Agent, found: Belongings, shown: _Shown, *, reveal: bool) -> Wire:
    blocks = [shown.blocks[block.pk] for block in found.blocks[agent.pk]]
    variables = [variable_state(variable, agent, reveal=reveal) for variable in found.variables[agent.pk]]
    return {
        **_identity(agent),
        "message_ids": found.message_ids[agent.pk],
        "memory": memory_state(agent, blocks),
        "blocks": blocks,
        "tools": [shown.tools[tool.pk] for tool in found.tools[agent.pk]],
        "sources": [],
        "tags": found.tags[agent.pk],
        "tool_exec_environment_variables": variables,
        "secrets": variables,
        "identities": [],
        "pending_approval": found.pending.get(agent.pk),
        "multi_agent_group": None,
        "managed_group": None,
    }


def _identity(agent: Agent) -> Wire:
    """The fields of the agent's own row."""
    extra = agent.extra or {}
    return {
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(agent.created_at),
        "updated_at": moment(agent.updated_at),
        "id": agent.wire_id,
        "name": agent.name,
        "tool_rules": agent.tool_rules or [],
        "system": agent.system,
        "agent_type": agent.agent_type,
        "llm_config": llm_config_state(agent.llm_config),
        "embedding_config": agent.embedding_config,
        "model": agent.model,
        "embedding": agent.embedding,
        "model_settings": model_settings_state(agent.llm_config, agent.model_settings or {}),
        "compaction_settings": {**COMPACTION, **(agent.compaction_settings or {})},
        "response_format": agent.response_format,
        "description": agent.description,
        "metadata": agent.metadata,
        "project_id": agent.project_id,
        "template_id": agent.template_id,
        "base_template_id": agent.base_template_id,
        "deployment_id": extra.get("deployment_id"),
        "entity_id": extra.get("entity_id"),
        "identity_ids": agent.identity_ids or [],
        "message_buffer_autoclear": agent.message_buffer_autoclear,
        "enable_sleeptime": extra.get("enable_sleeptime"),
        "last_run_completion": _moment(agent.last_run_completion),
        "last_run_duration_ms": agent.last_run_duration_ms,
        "last_stop_reason": agent.last_stop_reason,
        "timezone": agent.timezone,
        "max_files_open": extra.get("max_files_open", 10),
        "per_file_view_window_char_limit": extra.get("per_file_view_window_char_limit", 25_000),
        "hidden": agent.hidden,
    }


def _moment(value: datetime | None) -> str | None:
    return None if value is None else moment(value)
