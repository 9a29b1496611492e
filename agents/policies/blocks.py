"""Memory blocks by their wire id, and by label among an agent's."""

from __future__ import annotations

from agents.models import Agent, Block
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem


def block(wire: str) -> Block:
    """The block ``wire``; a :class:`Problem` 422 for a malformed and 404 for an unknown id."""
    found = Block.objects.filter(uuid=ids.parse("block", wire)).first()
    if found is None:
        raise Problem(404, f"Block with ID {wire} not found")
    return found


def labelled(owner: Agent, label: str) -> Block:
    """The block of ``owner`` under ``label``; a :class:`Problem` 404 when it has none of it."""
    found = Block.objects.filter(agentblock__agent=owner, agentblock__label=label).first()
    if found is None:
        raise Problem(404, f"Block with label '{label[:200]}' not found for agent {owner.wire_id}")
    return found
