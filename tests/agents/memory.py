"""Blocks for tests: attached, edited by a built-in tool, read back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from agents.memory.builtins import BuiltinResult, run
from agents.models import Agent, AgentBlock, Block
from tests.agents.factories import default_of

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def attach(agent: Agent, label: str = "human", value: str = "old", **fields: Any) -> Block:
    block = Block.objects.create(label=label, value=value, **fields)
    AgentBlock.objects.create(agent=agent, block=block, label=label)
    return block


def call(agent: Agent, name: str, **arguments: Any) -> BuiltinResult:
    with transaction.atomic():
        return run(name, arguments, agent, default_of(agent), now=NOW)


def value_of(block: Block) -> tuple[str, int]:
    block.refresh_from_db()
    return block.value, block.version
