"""The parts of a JSON schema that are schemas themselves, and where its references lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from tools.schema.errors import SchemaError

_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
)
_SAME_VALUE = ("anyOf", "oneOf", "allOf")
_SAME_VALUE_SINGLE = ("not", "if", "then", "else")
MAX_REFERENCES = 60


def parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas directly inside ``schema``; true and false are left out."""
    for word in _NAMED:
        yield from _objects(schema[word].values() if isinstance(schema.get(word), Mapping) else ())
    for word in _LISTED:
        yield from _objects(schema[word] if isinstance(schema.get(word), list) else ())
    yield from _objects(schema.get(word) for word in _SINGLE)


def rewritten(schema: Mapping[str, Any], rewrite: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy of ``schema`` with ``rewrite`` done to each schema directly inside it."""
    made = dict(schema)
    for word in _NAMED:
        if isinstance(made.get(word), Mapping):
            made[word] = {name: _applied(part, rewrite) for name, part in made[word].items()}
    for word in _LISTED:
        if isinstance(made.get(word), list):
            made[word] = [_applied(part, rewrite) for part in made[word]]
    for word in _SINGLE:
        if word in made:
            made[word] = _applied(made[word], rewrite)
    return made


def everything(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """``schema`` and all schemas inside it."""
    waiting = [schema]
    while waiting:
        schema = waiting.pop()
        yield schema
        waiting.extend(parts(schema))


def target(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference inside ``root`` points at. Raises ``SchemaError`` when it leads nowhere or outside."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        raise SchemaError(f"Invalid json_schema: the reference {reference!r} does not stay inside the schema")
    found: Any = root
    for step in reference[2:].split("/") if len(reference) > 1 else ():
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, Mapping) and name in found:
            found = found[name]
        else:
            raise SchemaError(f"Invalid json_schema: the reference {reference!r} leads nowhere")
    if not isinstance(found, Mapping | bool):
        raise SchemaError(f"Invalid json_schema: the reference {reference!r} leads to no schema")
    return found


def check_references(root: Mapping[str, Any]) -> None:
    """Raise ``SchemaError`` for references that leave the schema, lead nowhere, or go round in a circle."""
    settled: dict[int, int] = {}
    for schema in everything(root):
        _follow(schema, root, settled, [])


def _follow(schema: Mapping[str, Any], root: Mapping[str, Any], settled: dict[int, int], way: list[int]) -> int:
    """How many schemas one value passes through, one after the other, from ``schema`` on."""
    if id(schema) not in settled:
        if id(schema) in way or len(way) > MAX_REFERENCES:
            raise SchemaError("Invalid json_schema: a reference goes round in a circle")
        further = [_follow(part, root, settled, [*way, id(schema)]) for part in _of_same_value(schema, root)]
        settled[id(schema)] = 1 + max(further, default=0)
    if settled[id(schema)] + len(way) > MAX_REFERENCES:
        raise SchemaError(f"Invalid json_schema: more than {MAX_REFERENCES} references in a row")
    return settled[id(schema)]


def _of_same_value(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        yield from _objects([target(schema["$ref"], root)])
    for word in _SAME_VALUE:
        yield from _objects(schema[word] if isinstance(schema.get(word), list) else ())
    yield from _objects(schema.get(word) for word in _SAME_VALUE_SINGLE)


def _objects(found: Any) -> Iterator[Mapping[str, Any]]:
    return (part for part in found if isinstance(part, Mapping))


def _applied(part: Any, rewrite: Callable[[Any], Any]) -> Any:
    return rewrite(part) if isinstance(part, Mapping) else part
