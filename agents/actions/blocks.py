"""Everything that may happen to a memory block: made, changed, renamed, attached, detached, deleted.

A block's row is locked while it changes and its version rises, so that two writers follow each other and
a tool that read an older version notices. Prompts follow their blocks when the next step is prepared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction

from agents.actions.labels import checked_label
from agents.memory.blocks import check_value
from agents.models import Agent, AgentBlock, Block
from agents.wire.blocks import EXTRA
from lettaweb.lib.holding import held
from lettaweb.lib.problems import Problem

COLUMNS = (
    "label",
    "value",
    "limit",
    "description",
    "read_only",
    "metadata",
    "tags",
    "hidden",
    "is_template",
    "name",
    "project_id",
)
KEPT = (*EXTRA, "preserve_on_migration")
DESCRIPTIONS = {
    "human": "What the agent knows about the person it talks with.",
    "persona": "Who the agent is: its character, its manner and what it is there for.",
}


def create_block(given: Mapping[str, Any], *, born_with: Agent | None = None) -> Block:
    """Store a block. ``given`` holds its fields without nulls, label and value among them.

    ``born_with``: the agent that it is made for; the block goes with that agent unless another has it.
    Raises a :class:`Problem` 422 for a label or a value that does not fit.
    """
    columns = {name: given[name] for name in COLUMNS if name in given}
    columns.setdefault("description", DESCRIPTIONS.get(columns["label"]))
    block = Block(**columns, extra={name: given[name] for name in KEPT if name in given})
    checked_label(block.label)
    _check(block)
    if born_with is not None:
        block.extra["born_with"] = born_with.wire_id
    block.save(force_insert=True)
    return block


def update_block(block: Block, given: Mapping[str, Any]) -> Block:
    """Change a block for all agents that have it. Raises a :class:`Problem` 422 or 409 (label taken)."""
    with transaction.atomic():
        block = _locked(block)
        columns = {name: given[name] for name in COLUMNS if name in given}
        if columns.get("label", block.label) != block.label:
            _relabel(block, columns["label"])
        for name, value in columns.items():
            setattr(block, name, value)
        _check(block)
        block.extra = {**(block.extra or {}), **{name: given[name] for name in KEPT if name in given}}
        block.version += 1
        block.save()
    return block


def delete_block(block: Block) -> None:
    """Delete a block; agents that have it lose it."""
    block.delete()


def attach_block(agent: Agent, block: Block) -> None:
    """Give ``agent`` a block; again is fine. A :class:`Problem` 409 when it has another one of that label."""
    with transaction.atomic():
        attach_blocks(agent, [block])


def attach_blocks(agent: Agent, blocks: Iterable[Block]) -> None:
    """As :func:`attach_block`, inside a transaction that the caller holds.

    The blocks are held as they are: one that is being renamed comes under its new label.
    """
    blocks = list(blocks)
    rows = Block.objects.filter(pk__in=[block.pk for block in blocks]).order_by("pk").values_list("pk", "label")
    labels = dict(held(rows, "SHARE"))
    have = {link.label: link.block_id for link in AgentBlock.objects.filter(agent=agent)}
    for block in blocks:
        if block.pk not in labels:
            raise Problem(404, f"Block with ID {block.wire_id} not found")
        label = labels[block.pk]
        if have.setdefault(label, block.pk) != block.pk:
            raise _taken(label)
        AgentBlock.objects.get_or_create(agent=agent, block=block, defaults={"label": label})


def detach_block(agent: Agent, block: Block) -> None:
    """Take a block from ``agent``; a :class:`Problem` 404 when it does not have it."""
    gone, _ = AgentBlock.objects.filter(agent=agent, block=block).delete()
    if not gone:
        raise Problem(404, f"Block {block.wire_id} is not attached to agent {agent.wire_id}")


def set_blocks(agent: Agent, blocks: Iterable[Block]) -> None:
    """Make ``blocks`` the agent's only ones, inside a transaction that the caller holds."""
    wanted = list(blocks)
    AgentBlock.objects.filter(agent=agent).exclude(block__in=wanted).delete()
    attach_blocks(agent, wanted)


def _locked(block: Block) -> Block:
    found = Block.objects.select_for_update(no_key=True).filter(pk=block.pk).first()
    if found is None:
        raise Problem(404, f"Block with ID {block.wire_id} not found")
    return found


def _check(block: Block) -> None:
    refusal = check_value(block, block.value)
    if refusal:
        raise Problem(422, refusal)


def _relabel(block: Block, label: str) -> None:
    checked_label(label)
    try:
        with transaction.atomic():
            AgentBlock.objects.filter(block=block).update(label=label)
    except IntegrityError:
        raise _taken(label) from None


def _taken(label: str) -> Problem:
    return Problem(409, f"CONFLICT: the agent already has another block with the label '{label}'")
