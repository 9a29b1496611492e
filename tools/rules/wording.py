"""The rules in words, for the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tools.rules.kinds import Kind, Rule


def describe(rules: Iterable[Rule]) -> str:
    """The text of the ``tool_usage_rules`` block of the system prompt, "" when the rules say nothing."""
    order = list(_SENTENCES)
    told = sorted((rule for rule in rules if rule.kind in _SENTENCES), key=lambda rule: order.index(rule.kind))
    return "\n".join(f"- {sentence(rule)}" for rule in told)


def exit_note(names: Sequence[str]) -> str:
    """What the model is told when it tries to end a turn before these tools were called."""
    return f"ToolRuleViolated: You must call {', '.join(names)} before you can end this turn."


def sentence(rule: Rule) -> str:
    """One rule as a sentence, "" for a kind that is no business of the model's."""
    write = _SENTENCES.get(rule.kind)
    return write(rule) if write else ""


def _first(rule: Rule) -> str:
    return f"Your first call of a turn must be {rule.tool}, or another tool that a rule like this one names."


def _goes_on(rule: Rule) -> str:
    return f"After {rule.tool} you always get to act again."


def _child(rule: Rule) -> str:
    return f"Right after {rule.tool} you must call one of these tools: {', '.join(rule.children)}."


def _conditional(rule: Rule) -> str:
    cases = "; ".join(f"'{output}': {child}" for output, child in rule.outputs)
    if rule.outputs_only:
        other = "any other result: nothing may be called"
    else:
        other = f"any other result: {rule.default_child or 'any tool'}"
    return f"The result of {rule.tool} decides which tool you must call next ({cases}; {other})."


def _max_count(rule: Rule) -> str:
    return f"You may call {rule.tool} at most {rule.limit} time{'' if rule.limit == 1 else 's'} in a turn."


def _parent(rule: Rule) -> str:
    return f"You may call {', '.join(rule.children)} only right after {rule.tool}, and nothing else right after it."


def _ends(rule: Rule) -> str:
    return f"Calling {rule.tool} ends your turn."


def _before_exit(rule: Rule) -> str:
    return f"You must call {rule.tool} before you end your turn."


# In the order in which the rules are told.
_SENTENCES: dict[Kind, Callable[[Rule], str]] = {
    Kind.RUN_FIRST: _first,
    Kind.CONTINUE_LOOP: _goes_on,
    Kind.CHILD: _child,
    Kind.CONDITIONAL: _conditional,
    Kind.MAX_COUNT: _max_count,
    Kind.PARENT: _parent,
    Kind.EXIT_LOOP: _ends,
    Kind.BEFORE_EXIT: _before_exit,
}
