"""What a tool's schema says about its arguments, read without trust."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

_MAX_STEPS = 20


def parameters_of(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The JSON schema of the arguments: ``schema`` itself, or the parameters of a function schema."""
    if not isinstance(schema, Mapping):
        return {}
    inner = schema.get("parameters")
    return inner if isinstance(inner, Mapping) and "properties" not in schema else schema


def properties_of(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = parameters_of(schema).get("properties")
    return found if isinstance(found, Mapping) else {}


def required_of(schema: Mapping[str, Any] | None) -> Collection[str]:
    found = parameters_of(schema).get("required")
    return found if isinstance(found, list | tuple) else ()


def form_for(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that says what stands inside ``value``: behind references, and of several the one of its type."""
    for _ in range(_MAX_STEPS):
        reference = schema.get("$ref")
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(reference, str):
            schema = _pointed(reference, root)
        elif isinstance(branches, list):
            fitting = [branch for branch in branches if isinstance(branch, Mapping) and _may_hold(value, branch)]
            schema = fitting[0] if len(fitting) == 1 else {}
        else:
            return schema
    return {}


def _may_hold(value: Any, schema: Mapping[str, Any]) -> bool:
    return "$ref" in schema or schema.get("type") == ("object" if isinstance(value, dict) else "array")


def _pointed(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#").removeprefix("/").split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Whether null is a value of ``schema``, or may be: a schema that does not say so takes everything."""
    if "enum" in schema:
        return None in schema["enum"]
    if "type" in schema:
        words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return "null" in words
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        return any(not isinstance(branch, Mapping) or takes_null(branch) for branch in branches)
    return True
