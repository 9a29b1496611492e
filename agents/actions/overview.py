"""What fills an agent's context window: the parts of the next request and their estimated tokens.

All counting is local. The parts add up: context_window_size_current is the sum of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.context import estimate_tokens
from agents.context.tokens import text_tokens, tools_tokens
from agents.memory.blocks import block_views
from agents.memory.compile import memory_text
from agents.models import Agent, Message, MessageContext, MessageRole
from agents.policies.rows import default_conversation
from agents.providers.base import ToolSpec
from agents.wire.internal import internal_message
from tools import rules
from tools.models import Tool

Overview = dict[str, Any]


def context_overview(agent: Agent) -> Overview:
    """The ContextWindowOverview of an agent's own conversation."""
    conversation = default_conversation(agent)
    everything = Message.objects.filter(conversation=conversation)
    in_context = everything.filter(context__gt=MessageContext.OUT).order_by("id")
    messages = list(in_context.select_related("agent", "conversation", "run", "step"))
    parts = {**_prompt(agent), **_tools(agent), **_said(messages)}
    return {
        "context_window_size_max": int(agent.llm_config.get("context_window") or 128_000),
        "context_window_size_current": sum(value for name, value in parts.items() if name.startswith("num_tokens_")),
        "num_messages": len(messages),
        "num_archival_memory": 0,
        "num_recall_memory": everything.count(),
        **parts,
        "messages": [internal_message(message) for message in messages],
    }


def _prompt(agent: Agent) -> Overview:
    memory = memory_text(block_views(agent))
    described = rules.describe(rules.parse_rules(agent.tool_rules or []))
    facts = f"- agent id: {agent.wire_id}"
    return {
        "num_tokens_external_memory_summary": text_tokens(facts),
        "external_memory_summary": facts,
        "num_tokens_system": text_tokens(agent.system),
        "system_prompt": agent.system,
        "num_tokens_core_memory": text_tokens(memory),
        "core_memory": memory,
        "num_tokens_memory_filesystem": 0,
        "memory_filesystem": None,
        "num_tokens_tool_usage_rules": text_tokens(described),
        "tool_usage_rules": described or None,
        "num_tokens_directories": 0,
        "directories": None,
    }


def _tools(agent: Agent) -> Overview:
    tools = list(agent.tools.order_by("agenttool__id"))
    return {
        "num_tokens_functions_definitions": tools_tokens(map(_spec, tools)),
        "functions_definitions": [
            {"type": "function", "function": {**tool.json_schema, "strict": None}} for tool in tools
        ],
    }


def _definition(tool: Tool) -> Overview:
    return {"type": "function", "function": {**tool.json_schema, "strict": None}}


def _spec(tool: Tool) -> ToolSpec:
    described = tool.json_schema.get("description") or tool.description
    return ToolSpec(tool.name, described, tool.json_schema.get("parameters") or {})


def _said(messages: Sequence[Message]) -> Overview:
    summaries = [message for message in messages if message.role == MessageRole.SUMMARY]
    rest = [message for message in messages[1:] if message.role != MessageRole.SUMMARY]
    texts = [part["text"] for message in summaries for part in message.parts if part.get("type") == "text"]
    return {
        "num_tokens_summary_memory": sum(map(_tokens, summaries)),
        "summary_memory": "\n".join(texts) or None,
        "num_tokens_messages": sum(map(_tokens, rest)),
    }


def _tokens(message: Message) -> int:
    return message.tokens or estimate_tokens(message.parts)
