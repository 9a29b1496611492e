"""The tools that an agent gets by its type, unless it is created without them."""

from __future__ import annotations

_BY_TYPE = {
    "memgpt_agent": ("send_message", "conversation_search", "core_memory_append", "core_memory_replace"),
    "memgpt_v2_agent": ("send_message", "conversation_search", "memory_replace", "memory_insert"),
}
_OTHERS = ("conversation_search", "memory_replace", "memory_insert")


def base_tool_names(agent_type: str) -> tuple[str, ...]:
    """The built-in tools of an agent of this type."""
    return _BY_TYPE.get(agent_type, _OTHERS)
