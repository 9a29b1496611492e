"""Tool rules: what may be called when, what ends a turn, what asks a person. Pure functions over values."""

from tools.rules.errors import NoValidToolsError, RulesError
from tools.rules.kinds import ChildArgs, Kind, Rule, parse_rules, to_wire
from tools.rules.looping import (
    after_call,
    blocks_exit,
    default_rules,
    is_terminal,
    must_continue,
    rename_tool,
    requires_approval,
    with_approval,
    without_tool,
)
from tools.rules.offering import Called, Offer, is_forced, offer, unknown_tool, violation
from tools.rules.wording import describe, exit_note

__all__ = [
    "Called",
    "ChildArgs",
    "Kind",
    "NoValidToolsError",
    "Offer",
    "Rule",
    "RulesError",
    "after_call",
    "blocks_exit",
    "default_rules",
    "describe",
    "exit_note",
    "is_forced",
    "is_terminal",
    "must_continue",
    "offer",
    "parse_rules",
    "rename_tool",
    "requires_approval",
    "to_wire",
    "unknown_tool",
    "violation",
    "with_approval",
    "without_tool",
]
