"""Who may see, store and run tools. Every path that stores or runs one asks here, and nowhere else."""

from __future__ import annotations

from typing import Protocol

from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.models import Tool


class Actor(Protocol):
    """Who acts: anything that can say whether it has a permission (a user)."""

    def has_perm(self, perm: str) -> bool: ...


def may_write(actor: Actor) -> bool:
    """Whether ``actor`` may store tools and run their source: both execute what was sent."""
    return actor.has_perm("tools.add_tool") and actor.has_perm("tools.change_tool")


def must_write(actor: Actor) -> None:
    """A :class:`Problem` 403 unless ``actor`` may store and run tools."""
    if not may_write(actor):
        raise Problem(403, "You may not store or run tools")


def must_delete(actor: Actor) -> None:
    """A :class:`Problem` 403 unless ``actor`` may delete tools."""
    if not actor.has_perm("tools.delete_tool"):
        raise Problem(403, "You may not delete tools")


def tool(wire: str) -> Tool:
    """The tool of a wire id; a :class:`Problem` 422 for a malformed and 404 for an unknown one."""
    found = Tool.objects.filter(uuid=ids.parse("tool", wire)).first()
    if found is None:
        raise Problem(404, f"Tool with ID {wire} not found")
    return found
