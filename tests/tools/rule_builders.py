"""Tool rules as the wire writes them."""

from __future__ import annotations

from typing import Any

from tools.rules import Called

Json = dict[str, Any]


TOOLS = ("a", "b", "c", "d")


def run_first(tool: str, args: Json | None = None) -> Json:
    return {"type": "run_first", "tool_name": tool, "args": args}


def child(tool: str, *children: str, nodes: list[Json] | None = None) -> Json:
    return {"type": "constrain_child_tools", "tool_name": tool, "children": list(children), "child_arg_nodes": nodes}


def parent(tool: str, *children: str) -> Json:
    return {"type": "parent_last_tool", "tool_name": tool, "children": list(children)}


def conditional(tool: str, mapping: dict[Any, str], default: str | None = None, only: bool = False) -> Json:
    return {
        "type": "conditional",
        "tool_name": tool,
        "child_output_mapping": mapping,
        "default_child": default,
        "require_output_mapping": only,
    }


def at_most(tool: str, limit: int) -> Json:
    return {"type": "max_count_per_step", "tool_name": tool, "max_count_limit": limit}


def simple(kind: str, tool: str) -> Json:
    return {"type": kind, "tool_name": tool}


def calls(*names: str) -> list[Called]:
    return [Called(name) for name in names]


EVERY_KIND = [
    run_first("a", {"x": 1}),
    simple("exit_loop", "a"),
    simple("continue_loop", "a"),
    child("a", "b", "c", nodes=[{"name": "b", "args": {"y": [1]}}, {"name": "c", "args": None}]),
    parent("a", "b"),
    conditional("a", {"yes": "b"}, "c", True),
    at_most("a", 2),
    simple("required_before_exit", "a"),
    simple("requires_approval", "a"),
]
