"""Tool schemas for strict mode: rewritten where that keeps their meaning, refused (None) where it would not.

Strict mode wants every object closed and every property required. A schema with an optional property is not
rewritten: the model would have to send null for it, which is another thing than leaving it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
KEPT = ("description", "enum", "const", "$ref")
DROPPED = frozenset({"title", "$schema", "$defs", "definitions"})
KNOWN = DROPPED | {*KEPT, "type", "properties", "required", "additionalProperties", "items", "anyOf"}
MAX_DEPTH = 5


class _Unfit(Exception):
    """The schema cannot be strict."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as strict mode wants it, None when it cannot be said there."""
    try:
        if schema.get("type", "object") != "object":
            return None
        strict = _object(schema, depth=0)
        definitions = schema.get("$defs") or {}
        if definitions:
            strict["$defs"] = {name: _schema(inner, depth=1) for name, inner in definitions.items()}
        return strict if _refs_resolve(strict, frozenset(definitions)) else None
    except (_Unfit, AttributeError, TypeError):
        return None


def _schema(schema: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH or set(schema) - KNOWN:
        raise _Unfit
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _object(schema, depth=depth)
    strict: dict[str, Any] = {name: schema[name] for name in KEPT if name in schema}
    if "anyOf" in schema:
        strict["anyOf"] = [_schema(choice, depth=depth) for choice in schema["anyOf"]]
    if kind is not None:
        strict["type"] = _types(kind)
    if "array" in (kind if isinstance(kind, list) else [kind]):
        strict["items"] = _schema(schema["items"], depth=depth + 1) if "items" in schema else _unfit()
    if not {"type", "anyOf", "$ref", "enum", "const"} & set(strict):
        raise _Unfit  # any value at all
    return strict


def _object(schema: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    open_ended = schema.get("additionalProperties") not in (None, False) or (depth > 0 and not properties)
    if set(schema) - KNOWN or open_ended or set(properties) != set(schema.get("required") or ()):
        raise _Unfit
    strict: dict[str, Any] = {name: schema[name] for name in KEPT if name in schema}
    strict["type"] = "object"
    strict["properties"] = {name: _schema(inner, depth=depth + 1) for name, inner in properties.items()}
    return strict | {"required": list(properties), "additionalProperties": False}


def _types(kind: Any) -> Any:
    kinds = kind if isinstance(kind, list) else [kind]
    if not kinds or set(kinds) - TYPES or "object" in kinds:
        raise _Unfit
    return kind


def _unfit() -> dict[str, Any]:
    raise _Unfit


def _refs_resolve(value: Any, names: frozenset[str]) -> bool:
    if isinstance(value, dict):
        ref = value.get("$ref")
        good = not isinstance(ref, str) or (ref.startswith("#/$defs/") and ref.removeprefix("#/$defs/") in names)
        return good and all(_refs_resolve(inner, names) for inner in value.values())
    return all(_refs_resolve(inner, names) for inner in value) if isinstance(value, list) else True
