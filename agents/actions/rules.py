"""An agent's tool rules as lists: checked, deduplicated, with and without a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lettaweb.lib.problems import Problem
from tools import rules

Rule = dict[str, Any]
APPROVAL = "requires_approval"


def checked_rules(given: Sequence[Mapping[str, Any]]) -> list[Rule]:
    """``given`` in stored form, each rule once. A :class:`Problem` 422 names the first that does not fit."""
    try:
        return [rules.to_wire(rule) for rule in rules.parse_rules(given)]
    except rules.RuleError as error:
        raise Problem(422, f"tool_rules: {error}") from None


def approval_rule(name: str) -> Rule:
    return {"tool_name": name, "type": APPROVAL, "prompt_template": None}


def with_approval(stored: Sequence[Rule], names: Iterable[str]) -> list[Rule]:
    """``stored`` with a rule that asks for every one of ``names``."""
    gated = {rule["tool_name"] for rule in stored if rule["type"] == APPROVAL}
    return [*stored, *(approval_rule(name) for name in dict.fromkeys(names) if name not in gated)]


def without_approval(stored: Sequence[Rule], name: str) -> list[Rule]:
    return [rule for rule in stored if not (rule["type"] == APPROVAL and rule["tool_name"] == name)]


def without_tool(stored: Sequence[Rule], name: str) -> list[Rule]:
    """``stored`` without the rules of a tool and without its name in the rules of others.

    A rule that is left with no child, or no output, says nothing any more and goes too.
    """
    kept = [_stripped(rule, name) for rule in stored if rule["tool_name"] != name]
    return [rule for rule in kept if rule is not None]


def renamed(stored: Sequence[Rule], old: str, new: str) -> list[Rule]:
    """``stored`` with a tool under its new name, wherever it stands."""
    return [_renamed(rule, old, new) for rule in stored]


def _stripped(rule: Rule, name: str) -> Rule | None:
    rule = dict(rule)
    if "children" in rule:
        rule["children"] = [child for child in rule["children"] if child != name]
        if rule.get("child_arg_nodes"):
            rule["child_arg_nodes"] = [node for node in rule["child_arg_nodes"] if node["name"] != name]
        return rule if rule["children"] else None
    if "child_output_mapping" in rule:
        mapping = rule["child_output_mapping"]
        rule["child_output_mapping"] = {output: child for output, child in mapping.items() if child != name}
        if rule.get("default_child") == name:
            rule["default_child"] = None
        return rule if rule["child_output_mapping"] else None
    return rule


def _renamed(rule: Rule, old: str, new: str) -> Rule:
    def named(name: Any) -> Any:
        return new if name == old else name

    rule = {**rule, "tool_name": named(rule["tool_name"])}
    if "children" in rule:
        rule["children"] = [named(child) for child in rule["children"]]
    if rule.get("child_arg_nodes"):
        rule["child_arg_nodes"] = [{**node, "name": named(node["name"])} for node in rule["child_arg_nodes"]]
    if "child_output_mapping" in rule:
        rule["child_output_mapping"] = {key: named(child) for key, child in rule["child_output_mapping"].items()}
        rule["default_child"] = named(rule.get("default_child"))
    return rule
