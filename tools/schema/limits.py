"""Limits of values, as pydantic's Field and annotated_types write them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tools.schema.literals import literal

_NUMBERS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {
        "min_length": "minItems",
        "max_length": "maxItems",
        "min_items": "minItems",
        "max_items": "maxItems",
    },
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_PATTERNS = {"pattern": "pattern", "regex": "pattern"}
# annotated_types: the argument names of what is usually given by position.
_POSITIONS = {
    "annotated_types.Gt": ("gt",),
    "annotated_types.Ge": ("ge",),
    "annotated_types.Lt": ("lt",),
    "annotated_types.Le": ("le",),
    "annotated_types.MultipleOf": ("multiple_of",),
    "annotated_types.MinLen": ("min_length",),
    "annotated_types.MaxLen": ("max_length",),
    "annotated_types.Len": ("min_length", "max_length"),
    "annotated_types.Interval": (),
    "pydantic.StringConstraints": (),
    "pydantic.Field": (),
}
_MAX_PATTERN = 500


def is_limit(qualified: str) -> bool:
    return qualified in _POSITIONS


def read_limits(call: ast.Call, qualified: str, names: Mapping[str, ast.expr]) -> dict[str, Any]:
    """The literal arguments of a call such as ``Field(ge=0)``, by name; what is no literal is left out."""
    given = zip(_POSITIONS.get(qualified, ()), call.args, strict=False)
    named = ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    return _literals([*given, *named], names)


def with_limits(schema: dict[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` with those of ``limits`` that its type knows; each branch of an anyOf for itself."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [with_limits(branch, limits) for branch in schema["anyOf"]]}
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return {**schema, **_numbers(limits)}
    added = {word: limits[name] for name, word in _LENGTHS.get(str(kind), {}).items() if _is_count(limits.get(name))}
    if kind == "string":
        added.update({word: limits[name] for name, word in _PATTERNS.items() if _is_pattern(limits.get(name))})
    return {**schema, **added}


def _literals(pairs: Iterable[tuple[str, ast.expr]], names: Mapping[str, ast.expr]) -> dict[str, Any]:
    return {name: literal(node, names) for name, node in pairs}


def _numbers(limits: Mapping[str, Any]) -> dict[str, Any]:
    found = {word: limits[name] for name, word in _NUMBERS.items() if _is_number(limits.get(name))}
    if found.get("multipleOf", 1) <= 0:
        del found["multipleOf"]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_PATTERN
