"""Agents as the wire writes them, with everything that belongs to them, in a bounded number of reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects

from agents.models import (
    Agent,
    AgentBlock,
    AgentTag,
    AgentTool,
    AgentVariable,
    Block,
    Conversation,
    Message,
    MessageContext,
    ToolCall,
)
from agents.models.toolcall import WAITING
from agents.wire.blocks import block_state, memory_state
from agents.wire.llm import llm_config_state, model_settings_state
from agents.wire.messages import request_for
from agents.wire.variables import variable_state
from tools.models import Tool
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


@dataclass(slots=True)
class Belongings:
    """What belongs to agents, by their primary key."""

    tools: dict[int, list[Tool]] = field(default_factory=lambda: defaultdict(list))
    blocks: dict[int, list[Block]] = field(default_factory=lambda: defaultdict(list))
    message_ids: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    pending: dict[int, Wire] = field(default_factory=dict)


def agent_state(agent: Agent, *, reveal: bool) -> Wire:
    """One agent; see :func:`agent_states`."""
    return agent_states([agent], reveal=reveal)[0]


def agent_states(agents: Sequence[Agent], *, reveal: bool) -> list[Wire]:
    """Agents with every field that either SDK knows and all their relationships.

    ``reveal``: show the values of their secrets. Seven reads, however many agents there are.
    """
    if not agents:
        return []
    tags = Prefetch("tags", AgentTag.objects.order_by("id"))
    variables = Prefetch("variables", AgentVariable.objects.order_by("id"))
    prefetch_related_objects(list(agents), tags, variables)
    found = belongings([agent.pk for agent in agents])
    return [_state(agent, found, reveal=reveal) for agent in agents]


def belongings(pks: Iterable[int]) -> Belongings:
    """Tools, blocks, ids of the messages in context and pending approvals of agents."""
    keys = list(pks)
    found = Belongings()
    for link in AgentTool.objects.filter(agent__in=keys).select_related("tool").order_by("id"):
        found.tools[link.agent_id].append(link.tool)
    for attached in AgentBlock.objects.filter(agent__in=keys).select_related("block").order_by("id"):
        found.blocks[attached.agent_id].append(attached.block)
    own = dict(Conversation.objects.filter(agent__in=keys, is_default=True).values_list("pk", "agent_id"))
    # Both conditions, and no order: then the index of what is in context serves, however long the histories are.
    in_context = Message.objects.filter(conversation__in=own, context__gt=MessageContext.OUT, context=MessageContext.IN)
    for _, conversation, uuid in sorted(in_context.order_by().values_list("id", "conversation_id", "uuid")):
        found.message_ids[own[conversation]].append(f"message-{uuid}")
    found.pending = _pending(keys)
    return found


def _pending(keys: Sequence[int]) -> dict[int, Wire]:
    """The approval request that waits in an agent's default conversation."""
    waiting = ToolCall.objects.filter(agent__in=keys, conversation__is_default=True, state__in=WAITING)
    calls: dict[int, list[ToolCall]] = defaultdict(list)
    for call in waiting.select_related("message__step", "message__run").order_by("id"):
        calls[call.agent_id].append(call)
    return {pk: _request(rows) for pk, rows in calls.items()}


def _request(rows: Sequence[ToolCall]) -> Wire:
    message = rows[-1].message
    return request_for(message, [row for row in rows if row.message_id == message.pk])


def _state(agent: Agent, found: Belongings, *, reveal: bool) -> Wire:
    blocks = found.blocks[agent.pk]
    variables = [variable_state(variable, agent, reveal=reveal) for variable in agent.variables.all()]
    return {
        **_identity(agent),
        "message_ids": found.message_ids[agent.pk],
        "memory": memory_state(agent, blocks),
        "blocks": [block_state(block) for block in blocks],
        "tools": [tool_state(tool) for tool in found.tools[agent.pk]],
        "sources": [],
        "tags": [tag.tag for tag in agent.tags.all()],
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
