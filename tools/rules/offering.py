"""What the rules let a model call next, and what they say of a call that came all the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from lettaweb.lib.text import clean_text, shorten
from tools.results import as_text
from tools.rules.errors import NoValidToolsError
from tools.rules.kinds import Kind, Rule
from tools.rules.wording import sentence

MAX_SHOWN_NAME = 80
MAX_SHOWN_TOOLS = 100
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_SEQUENCE = frozenset({Kind.RUN_FIRST, Kind.CHILD, Kind.PARENT, Kind.CONDITIONAL})


class Called(NamedTuple):
    """A call of this turn that counts for the rules: it ran, well or not. ``message`` is its result."""

    name: str
    message: Any = ""
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that may be called next, in the agent's order.

    ``forced``: one of them must be called. ``prefill``: arguments by tool that go over the model's own.
    """

    names: tuple[str, ...]
    forced: bool = False
    prefill: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def offer(rules: Sequence[Rule], tool_names: Sequence[str], history: Sequence[Called]) -> Offer:
    """What may be called next. ``tool_names``: all tools of the agent; ``history``: the turn's calls, oldest first.

    Raises :class:`NoValidToolsError` when the rules leave nothing. When only the counts of calls are used
    up the offer is empty instead: the model can still answer in words.
    """
    wanted = _in_sequence(rules, tool_names, history)
    if tool_names and not wanted:
        raise NoValidToolsError
    forced = is_forced(rules, tool_names, history)
    names = tuple(name for name in wanted if not _is_used_up(rules, name, history))
    if wanted and not names and forced:
        raise NoValidToolsError
    prefill = {name: args for name, args in _prefill(rules, tool_names, history).items() if name in names}
    return Offer(names, forced, prefill)


def violation(
    rules: Sequence[Rule], tool_names: Sequence[str], name: str, history: Sequence[Called], *, beside: int = 0
) -> str | None:
    """Why ``name`` must not be called, as the result that the model gets; None when it may.

    The last ``beside`` entries of ``history`` belong to the same answer of the model as this call: they
    count, but it did not come after them.
    """
    before = history[: len(history) - beside] if beside else history
    in_sequence = _in_sequence(rules, tool_names, before)
    allowed = [tool for tool in in_sequence if not _is_used_up(rules, tool, history)]
    if name in allowed:
        return None
    return _refusal(name, allowed, _hints(rules, name, before))


def unknown_tool(rules: Sequence[Rule], tool_names: Sequence[str], name: str, history: Sequence[Called]) -> str:
    """The result of a call to a tool that the agent does not have, with the names that it may call."""
    in_sequence = _in_sequence(rules, tool_names, history)
    return _refusal(name, [tool for tool in in_sequence if not _is_used_up(rules, tool, history)], [])


def is_forced(rules: Sequence[Rule], tool_names: Sequence[str], history: Sequence[Called]) -> bool:
    """Whether a rule about the order of calls holds right now, so that one must follow."""
    if not history:
        return bool(_first_tools(rules, tool_names))
    last = history[-1].name
    return any(rule.tool == last for rule in rules if rule.kind in _SEQUENCE - {Kind.RUN_FIRST})


def _in_sequence(rules: Sequence[Rule], tool_names: Sequence[str], history: Sequence[Called]) -> list[str]:
    """The tools that the order of calls allows, in the agent's order, whatever their counts."""
    if not history and (first := _first_tools(rules, tool_names)):
        return first
    last = history[-1] if history else None
    checks = [_CHECKS[rule.kind](rule, last) for rule in rules if rule.kind in _CHECKS]
    return [name for name in dict.fromkeys(tool_names) if all(check(name) for check in checks)]


def _first_tools(rules: Sequence[Rule], tool_names: Sequence[str]) -> list[str]:
    first = {rule.tool for rule in rules if rule.kind is Kind.RUN_FIRST}
    return [name for name in dict.fromkeys(tool_names) if name in first]


_Check = Callable[[str], bool]


def _anything(_name: str) -> bool:
    return True


def _after_parent(rule: Rule, last: Called | None) -> _Check:
    return (lambda name: name in rule.children) if last and last.name == rule.tool else _anything


def _only_after_parent(rule: Rule, last: Called | None) -> _Check:
    follows = bool(last and last.name == rule.tool)
    return lambda name: (name in rule.children) is follows


def _by_output(rule: Rule, last: Called | None) -> _Check:
    if not last or last.name != rule.tool:
        return _anything
    child = _mapped(rule, as_text(last.message))
    if child is None and not rule.outputs_only:
        child = rule.default_child
        if child is None:
            return _anything
    return lambda name: name == child


_CHECKS: dict[Kind, Callable[[Rule, Called | None], _Check]] = {
    Kind.CHILD: _after_parent,
    Kind.PARENT: _only_after_parent,
    Kind.CONDITIONAL: _by_output,
}


def _mapped(rule: Rule, message: str) -> str | None:
    """The child of the output that is ``message``: the same text first, else the same boolean or number."""
    outputs = dict(rule.outputs)
    if message in outputs:
        return outputs[message]
    value = _value(message)
    same = (child for key, child in rule.outputs if value is not None and _value(key) == value)
    return next(same, None)


def _value(text: str) -> tuple[str, bool | Decimal] | None:
    word = text.strip().lower()
    if word in ("true", "false"):
        return "boolean", word == "true"
    return ("number", Decimal(word)) if len(word) <= 1000 and _NUMBER.fullmatch(word) else None


def _is_used_up(rules: Sequence[Rule], name: str, history: Sequence[Called]) -> bool:
    limits = [rule.limit for rule in rules if rule.kind is Kind.MAX_COUNT and rule.tool == name]
    return bool(limits) and sum(call.name == name for call in history) >= min(limits)


def _prefill(
    rules: Sequence[Rule], tool_names: Sequence[str], history: Sequence[Called]
) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    last = history[-1].name if history else None
    starts = not history and bool(_first_tools(rules, tool_names))
    for rule in rules:
        if rule.kind is Kind.RUN_FIRST and starts and rule.args:
            found[rule.tool] = {**found.get(rule.tool, {}), **rule.args}
        elif rule.kind is Kind.CHILD and rule.tool == last:
            found |= {node.name: {**found.get(node.name, {}), **node.args} for node in rule.child_args if node.args}
    return found


def _hints(rules: Sequence[Rule], name: str, before: Sequence[Called]) -> list[str]:
    last = before[-1].name if before else None
    return [said for rule in rules if _concerns(rule, name, last, bool(before)) and (said := sentence(rule))]


def _concerns(rule: Rule, name: str, last: str | None, started: bool) -> bool:
    match rule.kind:
        case Kind.RUN_FIRST:
            return not started
        case Kind.CHILD | Kind.CONDITIONAL:
            return rule.tool == last
        case Kind.PARENT:
            return rule.tool == last or name in rule.children
        case Kind.MAX_COUNT:
            return rule.tool == name
    return False


def _refusal(name: str, allowed: Sequence[str], hints: Sequence[str]) -> str:
    shown = shorten(clean_text(name), MAX_SHOWN_NAME)
    more = ", ..." if len(allowed) > MAX_SHOWN_TOOLS else ""
    names = ", ".join(repr(tool) for tool in allowed[:MAX_SHOWN_TOOLS])
    text = f"[ToolConstraintError] Cannot call {shown}, valid tools include: [{names}{more}]."
    return "\n".join([text, "Rules that forbid it:", *(f"- {hint}" for hint in hints)]) if hints else text
