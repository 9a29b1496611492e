"""What strict schemas may hold: the subset that structured outputs and strict functions take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.scripted.checks import schema_fault
from tests.scripted.refusals import expect, refuse

Json = Any

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "description", "title", "anyOf",
    "$ref", "$defs", "definitions", "pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "minItems", "maxItems",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schema stands: ``broken`` begins each message; ``path`` leads from the outermost schema to this one."""

    broken: str
    param: str
    code: str
    path: tuple[str, ...] = ()

    def expect(self, condition: Any, message: str) -> None:
        """Refuse, with this place in the message, unless the condition holds. Raises Refused."""
        context = f"In context=({', '.join(map(repr, self.path))}), "
        expect(condition, f"{self.broken}{context}{message}", param=self.param, code=self.code)


def check_strict(schema: Json, place: Place) -> None:
    """Refuse what a strict schema may not hold, anywhere in it. Raises Refused."""
    if not isinstance(schema, Mapping):
        return
    for keyword in schema:
        place.expect(keyword in KEYWORDS, f"'{keyword}' is not permitted.")
    place.expect(place.path or "anyOf" not in schema, "'anyOf' is not permitted at the top level.")
    typed = any(word in schema for word in ("type", "anyOf", "$ref", "enum", "const"))
    place.expect(typed, "schema must have a 'type' key.")
    kinds = schema.get("type", [])
    if kinds == "object" or "object" in kinds:
        check_strict_object(schema, place)
    for name, inner in inner_schemas(schema):
        check_strict(inner, replace(place, path=(*place.path, *name)))


def check_strict_object(schema: Mapping[str, Json], place: Place) -> None:
    closed = schema.get("additionalProperties") is False
    place.expect(closed, "'additionalProperties' is required to be supplied and to be false.")
    required = set(schema.get("required") or [])
    missing = next((name for name in schema.get("properties") or {} if name not in required), None)
    message = "'required' is required to be supplied and to be an array including every key in properties."
    place.expect(missing is None, f"{message} Missing '{missing}'.")
    extra = required - set(schema.get("properties") or {})
    place.expect(not extra, f"'required' names unknown properties: {sorted(extra)}.")


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
        check_strict(wanted.get("schema", {}), Place(broken, "response_format", "invalid_json_schema"))
