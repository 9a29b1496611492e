"""What strict schemas may hold: the subset that structured outputs and strict functions take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.scripted.checks import schema_fault
from tests.scripted.refusals import expect, refuse

Json = Any

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "description", "title", "anyOf",
    "$ref", "$defs", "definitions", "pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "minItems", "maxItems",
}  # fmt: skip


def check_strict(schema: Json, broken: str, param: str, code: str, path: tuple[str, ...] = ()) -> None:
    """Refuse what a strict schema may not hold, anywhere in it. Raises Refused."""
    if not isinstance(schema, Mapping):
        return
    place = f"In context=({', '.join(map(repr, path))}), "
    for keyword in schema:
        expect(keyword in KEYWORDS, f"{broken}{place}'{keyword}' is not permitted.", param=param, code=code)
    expect(
        path or "anyOf" not in schema,
        f"{broken}{place}'anyOf' is not permitted at the top level.",
        param=param,
        code=code,
    )
    typed = any(word in schema for word in ("type", "anyOf", "$ref", "enum", "const"))
    expect(typed, f"{broken}{place}schema must have a 'type' key.", param=param, code=code)
    kinds = schema.get("type", [])
    if kinds == "object" or "object" in kinds:
        check_strict_object(schema, f"{broken}{place}", param, code)
    for name, inner in inner_schemas(schema):
        check_strict(inner, broken, param, code, (*path, *name))


def check_strict_object(schema: Mapping[str, Json], start: str, param: str, code: str) -> None:
    closed = schema.get("additionalProperties") is False
    expect(closed, f"{start}'additionalProperties' is required to be supplied and to be false.", param=param, code=code)
    required = set(schema.get("required") or [])
    missing = next((name for name in schema.get("properties") or {} if name not in required), None)
    message = (
        f"{start}'required' is required to be supplied and to be an array including every key in properties. "
        f"Missing '{missing}'."
    )
    expect(missing is None, message, param=param, code=code)
    extra = required - set(schema.get("properties") or {})
    expect(not extra, f"{start}'required' names unknown properties: {sorted(extra)}.", param=param, code=code)


def inner_schemas(schema: Mapping[str, Json]) -> list[tuple[tuple[str, ...], Json]]:
    """(path, schema) of the schemas directly inside."""
    found: list[tuple[tuple[str, ...], Json]] = []
    for key in ("properties", "$defs", "definitions"):
        found += [((key, name), inner) for name, inner in (schema.get(key) or {}).items()]
    found += [(("anyOf", str(place)), inner) for place, inner in enumerate(schema.get("anyOf") or [])]
    return found + ([(("items",), schema["items"])] if "items" in schema else [])


def check_response_format(value: Json) -> None:
    """Refuse a response_format of unknown type or with a schema that is none. Raises Refused."""
    if value is None:
        return
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind in ("text", "json_object"):
        return
    if kind != "json_schema":
        refuse(f"Invalid value: {kind!r}.", param="response_format.type", code="invalid_value")
    wanted = value.get("json_schema")
    where = "response_format.json_schema"
    expect(
        isinstance(wanted, Mapping),
        f"Missing required parameter: '{where}'.",
        param=where,
        code="missing_required_parameter",
    )
    name = wanted.get("name")
    named = isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    expect(
        named, f"Invalid '{where}.name': string does not match pattern.", param=f"{where}.name", code="invalid_value"
    )
    broken = f"Invalid schema for response_format '{name}': "
    fault = schema_fault(wanted.get("schema", {}))
    expect(not fault, f"{broken}{fault}", param="response_format", code="invalid_json_schema")
    if wanted.get("strict"):
        check_strict(wanted.get("schema", {}), broken, "response_format", "invalid_json_schema")
