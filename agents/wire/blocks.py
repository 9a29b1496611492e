"""Memory blocks as the wire writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.models import Agent, Block

EXTRA = ("template_name", "template_id", "base_template_id", "deployment_id", "entity_id")
"""Fields of a block that are kept as they were sent and mean nothing here."""


def block_state(block: Block) -> dict[str, Any]:
    """A block with every field that either SDK knows."""
    extra = block.extra or {}
    return {
        "value": block.value,
        "limit": block.limit,
        "project_id": block.project_id,
        "is_template": block.is_template,
        **{name: extra.get(name) for name in EXTRA},
        "preserve_on_migration": bool(extra.get("preserve_on_migration")),
        "label": block.label,
        "read_only": block.read_only,
        "description": block.description,
        "metadata": block.metadata if block.metadata is not None else {},
        "hidden": block.hidden,
        "id": block.wire_id,
        "created_by_id": None,
        "last_updated_by_id": None,
        "tags": block.tags or [],
        "name": block.name,
    }


def memory_state(agent: Agent, blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The Memory object of an agent with ``blocks`` (:func:`block_state`); no file is ever part of it."""
    return {
        "agent_type": agent.agent_type,
        "git_enabled": False,
        "blocks": blocks,
        "file_blocks": [],
        "prompt_template": "",
    }
