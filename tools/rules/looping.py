"""Where the rules end a turn, keep it going, or ask for a person; and the rules of a tool that comes or goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from tools.rules.kinds import ChildArgs, Kind, Rule
from tools.rules.offering import Called

TERMINAL_TOOLS = ("send_message", "send_message_to_agent_async", "memory_finish_edits")
CONTINUE_TOOLS = (
    "conversation_search",
    "archival_memory_insert",
    "archival_memory_search",
    "core_memory_append",
    "core_memory_replace",
    "memory",
    "memory_apply_patch",
    "memory_insert",
    "memory_replace",
    "memory_rethink",
)
_WITHOUT_DEFAULTS = frozenset({"letta_v1_agent", "react_agent", "workflow_agent"})


def is_terminal(rules: Iterable[Rule], name: str) -> bool:
    """Whether a call of ``name`` ends the turn."""
    return _has(rules, Kind.EXIT_LOOP, name)


def must_continue(rules: Iterable[Rule], name: str) -> bool:
    """Whether the turn goes on after a call of ``name`` whatever the model says of it."""
    goes_on = (Kind.CONTINUE_LOOP, Kind.CHILD, Kind.CONDITIONAL)
    return any(rule.kind in goes_on and rule.tool == name for rule in rules)


def requires_approval(rules: Iterable[Rule], name: str) -> bool:
    """Whether a person must agree before ``name`` runs."""
    return _has(rules, Kind.APPROVAL, name)


def blocks_exit(
    rules: Iterable[Rule], history: Sequence[Called], *, tool_names: Collection[str] | None = None
) -> list[str]:
    """The tools that must be called before the turn may end and were not, in the rules' order.

    With ``tool_names`` only those of the agent's tools count: one that it lacks would keep it for ever.
    """
    called = {call.name for call in history}
    wanted = dict.fromkeys(rule.tool for rule in rules if rule.kind is Kind.BEFORE_EXIT)
    return [name for name in wanted if name not in called and (tool_names is None or name in tool_names)]


def after_call(
    rules: Sequence[Rule], name: str, history: Sequence[Called], *, tool_names: Collection[str] | None = None
) -> Literal["end", "continue", "default"]:
    """What the rules say once ``name`` ran (``history`` holds it): end, go on, or as the loop sees fit."""
    if blocks_exit(rules, history, tool_names=tool_names):
        return "continue"
    if is_terminal(rules, name):
        return "end"
    return "continue" if must_continue(rules, name) else "default"


def default_rules(agent_type: str, tool_names: Iterable[str], *, include: bool | None = None) -> tuple[Rule, ...]:
    """The rules that a new agent gets for its base tools: None for ``include`` leaves it to the agent's type."""
    if include is False or (include is None and agent_type in _WITHOUT_DEFAULTS):
        return ()
    made: list[Rule] = []
    for name in dict.fromkeys(tool_names):
        if name in TERMINAL_TOOLS:
            made.append(Rule(Kind.EXIT_LOOP, name))
        elif name in CONTINUE_TOOLS:
            made.append(Rule(Kind.CONTINUE_LOOP, name))
    return tuple(made)


def with_approval(rules: Sequence[Rule], name: str, required: bool) -> tuple[Rule, ...]:
    """``rules`` with calls of ``name`` asking a person, or no longer asking."""
    others = tuple(rule for rule in rules if not (rule.kind is Kind.APPROVAL and rule.tool == name))
    if not required:
        return others
    return tuple(rules) if len(others) < len(rules) else (*rules, Rule(Kind.APPROVAL, name))


def without_tool(rules: Iterable[Rule], name: str) -> tuple[Rule, ...]:
    """``rules`` after the tool ``name`` is gone: its own rules go, and its name in the rules of others.

    A rule that is left without any child goes too, as it would allow nothing.
    """
    kept = (_without_child(rule, name) for rule in rules if rule.tool != name)
    return tuple(rule for rule in kept if rule is not None)


def rename_tool(rules: Iterable[Rule], old: str, new: str) -> tuple[Rule, ...]:
    """``rules`` with the tool ``old`` called ``new`` everywhere."""

    def name(given: str) -> str:
        return new if given == old else given

    return tuple(
        replace(
            rule,
            tool=name(rule.tool),
            children=tuple(name(child) for child in rule.children),
            child_args=tuple(ChildArgs(name(node.name), node.args) for node in rule.child_args),
            outputs=tuple((output, name(child)) for output, child in rule.outputs),
            default_child=None if rule.default_child is None else name(rule.default_child),
        )
        for rule in rules
    )


def _has(rules: Iterable[Rule], kind: Kind, name: str) -> bool:
    return any(rule.kind is kind and rule.tool == name for rule in rules)


def _without_child(rule: Rule, name: str) -> Rule | None:
    if rule.kind in (Kind.CHILD, Kind.PARENT):
        children = tuple(child for child in rule.children if child != name)
        nodes = tuple(node for node in rule.child_args if node.name != name)
        return replace(rule, children=children, child_args=nodes) if children else None
    if rule.kind is Kind.CONDITIONAL:
        outputs = tuple((output, child) for output, child in rule.outputs if child != name)
        default = None if rule.default_child == name else rule.default_child
        return replace(rule, outputs=outputs, default_child=default) if outputs else None
    return rule
