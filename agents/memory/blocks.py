"""Memory blocks: how they are read, and the one rule that every write of a value must pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Agent, Block
from lettaweb.lib.ids import wire_id
from lettaweb.lib.statements import PreparedValues


@dataclass(frozen=True, slots=True)
class BlockView:
    """What a prompt and a tool see of a block. ``limit`` in characters, ``version`` as it was read."""

    label: str
    value: str = ""
    limit: int = 100_000
    description: str = ""
    read_only: bool = False
    version: int = 1
    pk: int = 0
    id: str = ""


VIEWED = ("label", "value", "limit", "description", "read_only", "version", "pk", "uuid")


def block_view(*row: Any) -> BlockView:
    """A block from its columns ``VIEWED``."""
    label, value, limit, description, read_only, version, pk, uid = row
    return BlockView(label, value, limit, description or "", read_only, version, pk, wire_id(Block.PREFIX, uid))


def block_views(agent: Agent) -> tuple[BlockView, ...]:
    """The agent's blocks in the order in which they were attached. One query."""
    return tuple(block_view(*row) for row in _blocks(agent.pk))


_blocks = PreparedValues(lambda key: Block.objects.filter(agents=key).order_by("agentblock__id").values_list(*VIEWED))


def check_value(block: Block | BlockView, value: str) -> str | None:
    """Why ``block`` cannot hold ``value``, None when it can.

    The only rule about sizes: API, tools and import ask here. Counts characters, not bytes. To change
    both limit and value, set the new limit on ``block`` first.
    """
    if len(value) <= block.limit:
        return None
    return f"Memory block '{block.label}' holds at most {block.limit} characters; the new value has {len(value)}"


def check_edit(block: Block | BlockView, value: str) -> str | None:
    """Why a tool may not give ``block`` this ``value``, None when it may."""
    if block.read_only:
        return f"Memory block '{block.label}' is read-only; tools cannot change it"
    return check_value(block, value)


def unknown_label(label: str, labels: Sequence[str]) -> str:
    """What to tell a model that named a block which its agent does not have."""
    known = ", ".join(f"'{known}'" for known in labels) or "none"
    return f"No memory block is labelled '{label[:200]}'. The blocks of this agent: {known}"
