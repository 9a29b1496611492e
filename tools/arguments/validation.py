"""Arguments against a tool's JSON schema, with a bound on the work that a hostile schema can cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import jsonschema
import referencing
import referencing.exceptions

from lettaweb.lib.text import shorten
from tools.arguments.errors import ArgumentsError
from tools.arguments.freezing import canonical
from tools.arguments.shape import parameters_of, properties_of, required_of

MAX_STEPS = 100_000
_COSTS = {"$ref": 20}  # a reference is looked up anew each time
_MAX_NAMES = 5
# What jsonschema raises at a schema that is no schema, or at numbers that no double holds.
_BROKEN = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError)
_left: ContextVar[list[int]] = ContextVar("steps_left")
_WORDS = {"object": "an object", "array": "a list", "integer": "an integer", "null": "null"}


class _TooMuch(Exception):
    """The schema wants more work than arguments are worth."""


def check(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None) -> None:
    """Raise :class:`ArgumentsError` when ``arguments`` do not fit the tool's schema, naming the first misfit.

    Patterns are not tried: a regular expression of a tool's author can keep a process busy for hours.
    """
    parameters = parameters_of(schema)
    _check_names(arguments, parameters)
    _left.set([MAX_STEPS])
    validator = _VALIDATOR(parameters, registry=referencing.Registry())
    try:
        error = next(validator.iter_errors(arguments), None)
    except (_TooMuch, RecursionError):
        raise ArgumentsError("The arguments are too large to be checked against the tool's schema.") from None
    except (*_BROKEN, referencing.exceptions.Unresolvable, jsonschema.exceptions.UnknownType):
        raise ArgumentsError("The arguments cannot be checked: the tool's schema does not fit them.") from None
    if error is not None:
        raise ArgumentsError(_said(error))


def _check_names(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    missing = [name for name in required_of(parameters) if name not in arguments]
    if missing:
        raise ArgumentsError(f"Missing required argument: {shorten(str(missing[0]), 80)}.")
    if not _is_closed(parameters):
        return
    known = properties_of(parameters)
    unknown = [shorten(name, 80) for name in arguments if name not in known]
    if unknown:
        takes = ", ".join(known) if known else "no arguments"
        raise ArgumentsError(
            f"Unknown argument{'s' if len(unknown) > 1 else ''}: {', '.join(unknown[:_MAX_NAMES])}. "
            f"The tool takes: {shorten(takes, 200)}."
        )


def _is_closed(parameters: Mapping[str, Any]) -> bool:
    # A function takes no keyword that it does not name, whatever JSON Schema thinks of open objects.
    if "properties" not in parameters or parameters.keys() & {"$ref", "anyOf", "oneOf", "allOf", "patternProperties"}:
        return False
    return parameters.get("additionalProperties", False) is False


def _said(error: jsonschema.ValidationError) -> str:
    where = ".".join(str(step) for step in error.absolute_path)
    subject = f"Argument {shorten(where, 120)}" if where else "The arguments"
    return f"{subject}: {_misfit(error)}."


def _misfit(error: jsonschema.ValidationError) -> str:
    wanted: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "type":
            words = wanted if isinstance(wanted, list) else [wanted]
            return f"must be {' or '.join(_WORDS.get(word, f'a {word}') for word in words)}, is {_kind(instance)}"
        case "enum":
            return f"must be one of {shorten(canonical(list(wanted)), 250)}"
        case "required":
            names = [name for name in wanted if name not in instance]
            return f"lacks {shorten(', '.join(names[:_MAX_NAMES]), 200)}"
        case "anyOf" | "oneOf":
            return "fits none of the forms that the tool's schema allows"
        case "uniqueItems":
            return "must not hold the same item twice"
    shown = f" {wanted}" if isinstance(wanted, int | float) and abs(wanted) < 1e16 else ""
    return f"breaks the rule {error.validator}{shown} of the tool's schema"


def _kind(value: Any) -> str:
    kinds = ((bool, "boolean"), (str, "a string"), (int | float, "a number"), (dict, "an object"), (list, "a list"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "null")


def _unique_items(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    # By canonical text: comparing every pair of a long list of objects would take hours.
    if wanted and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield jsonschema.ValidationError("not unique")


def _untried(*_: Any) -> Iterable[jsonschema.ValidationError]:
    return ()


def _counted(rule: Callable[..., Any], cost: int) -> Callable[..., Iterator[jsonschema.ValidationError]]:
    def run(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
        left = _left.get()
        left[0] -= cost
        if left[0] < 0:
            raise _TooMuch
        yield from rule(validator, wanted, instance, schema) or ()

    return run


def _additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
    if "patternProperties" in schema:
        return ()
    return jsonschema.Draft202012Validator.VALIDATORS["additionalProperties"](validator, wanted, instance, schema)


_RULES: dict[str, Callable[..., Any]] = {
    **jsonschema.Draft202012Validator.VALIDATORS,
    "uniqueItems": _unique_items,
    "pattern": _untried,
    "patternProperties": _untried,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _untried,
    "unevaluatedItems": _untried,
    "$dynamicRef": _untried,
}
_VALIDATOR: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {word: _counted(rule, _COSTS.get(word, 1)) for word, rule in _RULES.items()}
)
