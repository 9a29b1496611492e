"""Schemas for strict function calling, where a vendor makes the model keep to the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.schema.errors import SchemaError
from tools.schema.walking import target

_MAX_DEPTH = 10
_MAX_PROPERTIES = 1000
_MAX_VALUES = 500
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# What has no strict form. Limits such as minimum are dropped instead: arguments are checked anyway.
_IMPOSSIBLE = frozenset(
    {"not", "if", "then", "else", "patternProperties", "prefixItems", "dependentSchemas", "dependentRequired"}
    | {"contains", "unevaluatedProperties", "unevaluatedItems", "minProperties"}
)
_NULL = {"type": "null"}


class _NotStrict(Exception):
    """The schema has no strict form."""


def strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of a tool rewritten for strict function calling, None where that cannot be.

    Every object is closed and requires all its properties; optional ones may be null instead of absent
    (``tools.arguments.parse`` takes such nulls out again). References are written out.
    """
    try:
        made = _Rewriting(schema).of(schema, ())
    except (_NotStrict, SchemaError, RecursionError):
        return None
    return made if made.get("type") == "object" else None


@dataclass(slots=True)
class _Rewriting:
    """One rewriting, with the properties and values that are left before it is too large."""

    root: Mapping[str, Any]
    properties: int = _MAX_PROPERTIES
    values: int = _MAX_VALUES

    def of(self, schema: Any, way: tuple[str, ...], depth: int = 0) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or schema.keys() & _IMPOSSIBLE or depth > _MAX_DEPTH:
            raise _NotStrict
        if "$ref" in schema:
            return self._referred(schema, way, depth)
        described = {"description": schema["description"]} if schema.get("description") else {}
        return {**self._shape(schema, way, depth), **described}

    def _referred(self, schema: Mapping[str, Any], way: tuple[str, ...], depth: int) -> dict[str, Any]:
        reference = schema["$ref"]
        if reference in way:
            raise _NotStrict
        beside = {word: part for word, part in schema.items() if word != "$ref"}
        found = target(reference, self.root)
        if not isinstance(found, Mapping):
            raise _NotStrict
        return self.of({**found, **beside}, (*way, reference), depth)

    def _shape(self, schema: Mapping[str, Any], way: tuple[str, ...], depth: int) -> dict[str, Any]:
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches and "allOf" not in schema:
            return {"anyOf": [self.of(branch, way, depth) for branch in branches]}
        if isinstance(schema.get("allOf"), list):
            return self._merged(schema, way, depth)
        if "enum" in schema or "const" in schema:
            return self._closed(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            return {"anyOf": [self._typed(str(word), schema, way, depth) for word in kind]}
        return self._typed(str(kind), schema, way, depth)

    def _merged(self, schema: Mapping[str, Any], way: tuple[str, ...], depth: int) -> dict[str, Any]:
        if len(schema["allOf"]) != 1 or not isinstance(schema["allOf"][0], Mapping):
            raise _NotStrict
        beside = {word: part for word, part in schema.items() if word != "allOf"}
        return self.of({**schema["allOf"][0], **beside}, way, depth + 1)

    def _closed(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        self.values -= len(values)
        words = list(dict.fromkeys(_word(value) for value in values))
        if self.values < 0 or not words:
            raise _NotStrict
        return {"type": words[0] if len(words) == 1 else words, "enum": values}

    def _typed(self, kind: str, schema: Mapping[str, Any], way: tuple[str, ...], depth: int) -> dict[str, Any]:
        if kind == "object":
            return self._object(schema, way, depth)
        if kind == "array":
            return {"type": "array", "items": self.of(schema.get("items"), way, depth + 1)}
        if kind == "string" and schema.get("format") in _FORMATS:
            return {"type": "string", "format": schema["format"]}
        if kind not in ("string", "integer", "number", "boolean", "null"):
            raise _NotStrict
        return {"type": kind}

    def _object(self, schema: Mapping[str, Any], way: tuple[str, ...], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        # An object of any keys, or below the top of no known ones, cannot be closed.
        if schema.get("additionalProperties") not in (None, False) or (not properties and depth):
            raise _NotStrict
        self.properties -= len(properties)
        if self.properties < 0:
            raise _NotStrict
        required = schema.get("required", ())
        made = {name: self._property(part, name in required, way, depth) for name, part in properties.items()}
        return {"type": "object", "properties": made, "required": list(made), "additionalProperties": False}

    def _property(self, schema: Any, required: bool, way: tuple[str, ...], depth: int) -> dict[str, Any]:
        made = self.of(schema, way, depth + 1)
        return made if required else _or_null(made)


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return schema if _NULL in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    if schema["type"] in ("object", "array"):
        described = {"description": schema.pop("description")} if "description" in schema else {}
        return {"anyOf": [schema, _NULL], **described}
    words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "null" in words:
        return schema
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*words, "null"], **values}


def _word(value: Any) -> str:
    for kind, word in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (type(None), "null")):
        if isinstance(value, kind):
            return word
    raise _NotStrict
