"""Closed sets of values: Literal, Enum, and what may be a key of an object."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.schema.errors import UnmappableError
from tools.schema.literals import MISSING, literal
from tools.schema.scope import Scope

_WORDS = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (type(None), "null"))
_TEXT_ENUMS = frozenset({"enum.StrEnum"})
_FLAGS = frozenset({"enum.Flag", "enum.IntFlag"})
ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})


def value_schema(values: Iterable[Any], shown: str) -> dict[str, Any]:
    """The schema of one of ``values``, with the JSON types that they have."""
    unique: list[Any] = []
    for value in values:
        if not any(value == known and type(value) is type(known) for known in unique):
            unique.append(value)
    words = list(dict.fromkeys(_word(value, shown) for value in unique))
    if not unique:
        raise UnmappableError(shown)
    return {"type": words[0] if len(words) == 1 else words, "enum": unique}


def literal_schema(arguments: Sequence[ast.expr], scope: Scope) -> dict[str, Any]:
    """The schema of ``Literal[...]``; nested ones are laid flat, members of enums stand for their values."""
    return value_schema(_literal_values(arguments, scope), f"Literal[{len(arguments)} values]")


def enum_schema(node: ast.ClassDef, bases: Iterable[str], scope: Scope) -> dict[str, Any]:
    """The schema of an Enum class: its members' values. ``bases`` are the full names of all its bases."""
    known = frozenset(bases)
    if known & _FLAGS:
        return {"type": "integer"}
    members = _members(node, known, scope)
    missing = [name for name, value in members if value is MISSING]
    if missing:
        raise UnmappableError(f"{node.name} (the value of {missing[0]} is not a literal)")
    return value_schema([value for _, value in members], node.name)


def key_names(key: dict[str, Any]) -> dict[str, Any] | None:
    """What the schema of a dictionary's keys adds to its object, None when they are no texts or numbers."""
    if not key or key == {"type": "string"}:
        return {}
    kinds = key.get("type")
    if kinds == "string":
        return {"propertyNames": key}
    return {} if kinds in ("integer", "number") else None


def _word(value: Any, shown: str) -> str:
    for kind, word in _WORDS:
        if isinstance(value, kind) and not (isinstance(value, float) and not math.isfinite(value)):
            return word
    raise UnmappableError(f"{shown} (a value of type {type(value).__name__})")


def _literal_values(arguments: Sequence[ast.expr], scope: Scope) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, ast.Subscript):
            inner = argument.slice.elts if isinstance(argument.slice, ast.Tuple) else [argument.slice]
            yield from _literal_values(inner, scope)
        elif isinstance(argument, ast.Attribute):
            yield _member(argument, scope)
        else:
            yield literal(argument, {})


def _member(node: ast.Attribute, scope: Scope) -> Any:
    enum = scope.classes.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if enum is None:
        return MISSING
    bases = {scope.qualified(base) for base in enum.bases}
    return dict(_members(enum, frozenset(bases), scope)).get(node.attr, MISSING)


def _members(node: ast.ClassDef, bases: frozenset[str], scope: Scope) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in _assignments(node):
        if name.startswith("_"):
            continue
        if isinstance(value, ast.Call) and scope.qualified(value.func) == "enum.auto":
            found.append((name, _automatic(name, found, bases)))
        else:
            found.append((name, literal(value, scope.constants)))
    return found


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from ((target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, statement.value


def _automatic(name: str, before: Sequence[tuple[str, Any]], bases: frozenset[str]) -> Any:
    if bases & _TEXT_ENUMS:
        return name.lower()
    numbers = [value for _, value in before if isinstance(value, int)]
    return max(numbers, default=0) + 1
