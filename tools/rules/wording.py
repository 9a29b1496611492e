"""The rules in words, for the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tools.rules.kinds import Kind, Rule

# The order in which the rules are told.
_TOLD = (
    Kind.RUN_FIRST,
    Kind.CONTINUE_LOOP,
    Kind.CHILD,
    Kind.CONDITIONAL,
    Kind.MAX_COUNT,
    Kind.PARENT,
    Kind.EXIT_LOOP,
    Kind.BEFORE_EXIT,
)


def describe(rules: Iterable[Rule]) -> str:
    """The text of the ``tool_usage_rules`` block of the system prompt, "" when the rules say nothing."""
    told = [rule for rule in rules if rule.kind in _TOLD]
    told.sort(key=lambda rule: _TOLD.index(rule.kind))
    return "\n".join(f"- {sentence(rule)}" for rule in told)


def exit_note(names: Sequence[str]) -> str:
    """What the model is told when it tries to end a turn before these tools were called."""
    return f"ToolRuleViolated: You must call {', '.join(names)} before you can end this turn."


def sentence(rule: Rule) -> str:
    """One rule as a sentence, "" for a kind that is no business of the model's."""
    match rule.kind:
        case Kind.RUN_FIRST:
            return f"Your first call of a turn must be {rule.tool}, or another tool that a rule like this one names."
        case Kind.CONTINUE_LOOP:
            return f"After {rule.tool} you always get to act again."
        case Kind.CHILD:
            return f"Right after {rule.tool} you must call one of these tools: {', '.join(rule.children)}."
        case Kind.CONDITIONAL:
            return _conditional(rule)
        case Kind.MAX_COUNT:
            return f"You may call {rule.tool} at most {rule.limit} time{'' if rule.limit == 1 else 's'} in a turn."
        case Kind.PARENT:
            names = ", ".join(rule.children)
            return f"You may call {names} only right after {rule.tool}, and nothing else right after it."
        case Kind.EXIT_LOOP:
            return f"Calling {rule.tool} ends your turn."
        case Kind.BEFORE_EXIT:
            return f"You must call {rule.tool} before you end your turn."
    return ""


def _conditional(rule: Rule) -> str:
    cases = "; ".join(f"'{output}': {child}" for output, child in rule.outputs)
    if rule.outputs_only:
        other = "any other result: nothing may be called"
    else:
        other = f"any other result: {rule.default_child or 'any tool'}"
    return f"The result of {rule.tool} decides which tool you must call next ({cases}; {other})."
