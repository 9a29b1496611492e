"""An agent's tool rules as its row stores them: checked, deduplicated, with and without a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lettaweb.lib.problems import Problem
from tools import rules

Stored = list[dict[str, Any]]


def first_rules(kind: str, names: Iterable[str], given: Sequence[Mapping[str, Any]], wanted: bool | None) -> Stored:
    """The rules of a new agent of type ``kind``: those ``given``, then those of its built-in tools.

    ``wanted``: whether it gets the latter, None leaves it to its type. Raises as :func:`checked_rules`.
    """
    base = [rules.to_wire(rule) for rule in rules.default_rules(kind, names, include=wanted)]
    return checked_rules([*given, *base])


def checked_rules(given: Sequence[Mapping[str, Any]]) -> Stored:
    """``given`` in stored form, each rule once. A :class:`Problem` 422 names the first that does not fit."""
    try:
        return _stored(rules.parse_rules(given))
    except rules.RulesError as error:
        raise Problem(422, f"tool_rules: {error}") from None


def with_approval(stored: Stored, names: Iterable[str], *, required: bool = True) -> Stored:
    """``stored`` with calls of these tools asking a person, or no longer asking."""
    parsed = rules.parse_rules(stored)
    for name in names:
        parsed = rules.with_approval(parsed, name, required)
    return _stored(parsed)


def without_tool(stored: Stored, name: str) -> Stored:
    """``stored`` without the rules of a tool and without its name in the rules of others."""
    return _stored(rules.without_tool(rules.parse_rules(stored), name))


def renamed(stored: Stored, old: str, new: str) -> Stored:
    """``stored`` with a tool under its new name, wherever it stands."""
    return _stored(rules.rename_tool(rules.parse_rules(stored), old, new))


def _stored(parsed: Iterable[rules.Rule]) -> Stored:
    return [rules.to_wire(rule) for rule in parsed]
