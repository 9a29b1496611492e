"""The nine kinds of tool rules: as values, and as the wire writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lettaweb.lib.text import UnfitError, clean_json, clean_text, shorten
from tools.rules.errors import RulesError

MAX_RULES = 500
MAX_CHILDREN = 200
MAX_NAME = 255
MAX_TEMPLATE = 10_000
MAX_ARGS_DEPTH = 64


class Kind(StrEnum):
    RUN_FIRST = "run_first"
    EXIT_LOOP = "exit_loop"
    CONTINUE_LOOP = "continue_loop"
    CHILD = "constrain_child_tools"
    PARENT = "parent_last_tool"
    CONDITIONAL = "conditional"
    MAX_COUNT = "max_count_per_step"
    BEFORE_EXIT = "required_before_exit"
    APPROVAL = "requires_approval"


@dataclass(frozen=True, slots=True)
class ChildArgs:
    """Arguments that a child is called with right after its parent; None: the model's own."""

    name: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A tool rule. Only the fields of its kind are filled.

    ``children`` belongs to CHILD and PARENT, ``child_args`` to CHILD, ``outputs`` (pairs of output and
    tool), ``default_child`` and ``outputs_only`` to CONDITIONAL, ``limit`` to MAX_COUNT, ``args`` to
    RUN_FIRST. ``template`` is kept for clients that send one; it is never rendered.
    """

    kind: Kind
    tool: str
    children: tuple[str, ...] = ()
    child_args: tuple[ChildArgs, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    default_child: str | None = None
    outputs_only: bool = False
    limit: int = 0
    args: Mapping[str, Any] | None = None
    template: str | None = None


def parse_rules(given: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Rules from their wire form, each once, in their order. Raises :class:`RulesError`."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise RulesError("tool rules must be a list")
    if len(given) > MAX_RULES:
        raise RulesError(f"there may be at most {MAX_RULES} tool rules")
    found: list[Rule] = []
    for number, entry in enumerate(given):
        rule = _rule(entry, f"rule {number + 1}")
        if rule not in found:
            found.append(rule)
    return tuple(found)


def to_wire(rule: Rule) -> dict[str, Any]:
    """A rule as clients read it."""
    wire: dict[str, Any] = {"tool_name": rule.tool, "type": str(rule.kind), "prompt_template": rule.template}
    match rule.kind:
        case Kind.RUN_FIRST:
            wire["args"] = None if rule.args is None else dict(rule.args)
        case Kind.CHILD:
            nodes = [{"name": node.name, "args": node.args} for node in rule.child_args]
            wire |= {"children": list(rule.children), "child_arg_nodes": nodes or None}
        case Kind.PARENT:
            wire["children"] = list(rule.children)
        case Kind.CONDITIONAL:
            wire |= {
                "default_child": rule.default_child,
                "child_output_mapping": dict(rule.outputs),
                "require_output_mapping": rule.outputs_only,
            }
        case Kind.MAX_COUNT:
            wire["max_count_limit"] = rule.limit
    return wire


def _rule(entry: Any, place: str) -> Rule:
    if not isinstance(entry, Mapping):
        raise RulesError(f"{place} must be an object")
    kind = _kind(entry.get("type"), place)
    place = f"{place} ({kind})"
    tool = _name(entry.get("tool_name"), "tool_name", place)
    template = _template(entry.get("prompt_template"), place)
    match kind:
        case Kind.RUN_FIRST:
            return Rule(kind, tool, args=_args(entry.get("args"), "args", place), template=template)
        case Kind.CHILD:
            children = _children(entry, place)
            nodes = _child_args(entry.get("child_arg_nodes"), children, place)
            return Rule(kind, tool, children=children, child_args=nodes, template=template)
        case Kind.PARENT:
            return Rule(kind, tool, children=_children(entry, place), template=template)
        case Kind.CONDITIONAL:
            return _conditional(entry, tool, template, place)
        case Kind.MAX_COUNT:
            return Rule(kind, tool, limit=_limit(entry.get("max_count_limit"), place), template=template)
    return Rule(kind, tool, template=template)


def _kind(value: Any, place: str) -> Kind:
    try:
        return Kind(value)
    except ValueError:
        known = ", ".join(Kind)
        raise RulesError(f"{place}: type {shorten(repr(value), 60)} is not one of {known}") from None


def _name(value: Any, field: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RulesError(f"{place}: {field} must be the name of a tool")
    if len(value) > MAX_NAME:
        raise RulesError(f"{place}: {field} is longer than {MAX_NAME} characters")
    return clean_text(value)


def _template(value: Any, place: str) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) > MAX_TEMPLATE):
        raise RulesError(f"{place}: prompt_template must be a text of at most {MAX_TEMPLATE} characters")
    return None if value is None else clean_text(value)


def _children(entry: Mapping[str, Any], place: str) -> tuple[str, ...]:
    children = entry.get("children")
    if not isinstance(children, list | tuple) or not 0 < len(children) <= MAX_CHILDREN:
        raise RulesError(f"{place}: children must be a list of 1 to {MAX_CHILDREN} tool names")
    return tuple(dict.fromkeys(_name(child, "each of children", place) for child in children))


def _child_args(nodes: Any, children: tuple[str, ...], place: str) -> tuple[ChildArgs, ...]:
    if nodes is None:
        return ()
    if not isinstance(nodes, list | tuple) or len(nodes) > MAX_CHILDREN:
        raise RulesError(f"{place}: child_arg_nodes must be a list of at most {MAX_CHILDREN} objects")
    return tuple(_child_node(node, children, place) for node in nodes)


def _child_node(node: Any, children: tuple[str, ...], place: str) -> ChildArgs:
    if not isinstance(node, Mapping):
        raise RulesError(f"{place}: each of child_arg_nodes must be an object")
    name = _name(node.get("name"), "the name in child_arg_nodes", place)
    if name not in children:
        raise RulesError(f"{place}: child_arg_nodes names '{shorten(name, 80)}', which is not in children")
    return ChildArgs(name, _args(node.get("args"), f"args of '{shorten(name, 80)}'", place))


def _conditional(entry: Mapping[str, Any], tool: str, template: str | None, place: str) -> Rule:
    mapping = entry.get("child_output_mapping")
    if not isinstance(mapping, Mapping) or not 0 < len(mapping) <= MAX_CHILDREN:
        raise RulesError(f"{place}: child_output_mapping must map 1 to {MAX_CHILDREN} outputs to tool names")
    default = entry.get("default_child")
    only = entry.get("require_output_mapping")
    if not isinstance(only, bool | None):
        raise RulesError(f"{place}: require_output_mapping must be true or false")
    return Rule(
        Kind.CONDITIONAL,
        tool,
        outputs=tuple((_output(key, place), _name(child, "each mapped tool", place)) for key, child in mapping.items()),
        default_child=None if default is None else _name(default, "default_child", place),
        outputs_only=bool(only),
        template=template,
    )


def _output(key: Any, place: str) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if not isinstance(key, str | int | float) or len(str(key)) > MAX_TEMPLATE:
        raise RulesError(f"{place}: the outputs in child_output_mapping must be texts, numbers or booleans")
    return clean_text(str(key))


def _limit(value: Any, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise RulesError(f"{place}: max_count_limit must be an integer of 0 or more")
    return value


def _args(value: Any, field: str, place: str) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        made = clean_json(value, max_depth=MAX_ARGS_DEPTH)
    except UnfitError as error:
        raise RulesError(f"{place}: {field}: {error}") from None
    if not isinstance(made, dict):
        raise RulesError(f"{place}: {field} must be an object")
    return made
