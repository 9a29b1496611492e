"""The tools and rules that an agent gets by its kind, unless it is created without them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.memory.defaults import MEMGPT_TYPES

_BY_TYPE = {
    "memgpt_agent": ("send_message", "conversation_search", "core_memory_append", "core_memory_replace"),
    "memgpt_v2_agent": ("send_message", "conversation_search", "memory_replace", "memory_insert"),
}
_OTHERS = ("conversation_search", "memory_replace", "memory_insert")

_ENDS = frozenset({"send_message"})
_GOES_ON = frozenset(
    {"conversation_search", "core_memory_append", "core_memory_replace", "memory_replace", "memory_insert"}
)


def base_tool_names(agent_type: str) -> tuple[str, ...]:
    """The built-in tools of an agent of this type."""
    return _BY_TYPE.get(agent_type, _OTHERS)


def base_rules(agent_type: str, names: Iterable[str], wanted: bool | None) -> list[dict[str, Any]]:
    """The rules of built-in tools among ``names``; ``wanted`` None: only memgpt agents have them."""
    if not (agent_type in MEMGPT_TYPES if wanted is None else wanted):
        return []
    kinds = [(name, "exit_loop") for name in names if name in _ENDS]
    kinds += [(name, "continue_loop") for name in names if name in _GOES_ON]
    return [{"tool_name": name, "type": kind, "prompt_template": None} for name, kind in kinds]
