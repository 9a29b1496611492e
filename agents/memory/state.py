"""What uploaded tools get as ``agent_state``: plain JSON, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents.memory.blocks import BlockView
from agents.models import Agent
from tools.models import Tool


def agent_state(agent: Agent, blocks: Sequence[BlockView], tools: Iterable[Tool] = ()) -> dict[str, Any]:
    """The JSON that a tool's ``agent_state`` parameter is made of."""
    return {
        "id": agent.wire_id,
        "name": agent.name,
        "agent_type": agent.agent_type,
        "description": agent.description,
        "system": agent.system,
        "model": agent.model,
        "timezone": agent.timezone or "UTC",
        "metadata": agent.metadata or {},
        "memory": {"blocks": [_block(block) for block in blocks]},
        "tools": [{"id": tool.wire_id, "name": tool.name, "description": tool.description} for tool in tools],
    }


def _block(block: BlockView) -> dict[str, Any]:
    return {
        "id": block.id,
        "label": block.label,
        "value": block.value,
        "limit": block.limit,
        "description": block.description or None,
        "read_only": block.read_only,
    }


def block_versions(blocks: Iterable[BlockView]) -> dict[str, int]:
    """The version of each block by label, to be kept until ``apply_block_values``."""
    return {block.label: block.version for block in blocks}
