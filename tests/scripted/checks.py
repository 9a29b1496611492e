"""Small checks that both vendors' rules share: names, schemas, images, texts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SCHEMA_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
SUBSCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames")
SUBSCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SUBSCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties")
MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF",
}  # fmt: skip


def has_lone_surrogate(value: Json) -> bool:
    """Whether any text of the JSON value cannot be written as UTF-8."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        return any(has_lone_surrogate(item) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(has_lone_surrogate(item) for item in value)


def subschemas(schema: Mapping[str, Json]) -> Iterator[Json]:
    """The schemas directly inside a schema."""
    yield from (schema[key] for key in SUBSCHEMAS if key in schema)
    yield from (item for key in SUBSCHEMA_LISTS for item in schema.get(key) or [])
    yield from (item for key in SUBSCHEMA_MAPS for item in (schema.get(key) or {}).values())


def schema_fault(schema: Json) -> str:
    """Why this is no JSON schema, "" when it looks like one (shape and types only)."""
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, Mapping):
        return f"{schema!r} is not of type 'object', 'boolean'"
    fault = _types_fault(schema) or _shape_fault(schema)
    return fault or next(filter(None, map(schema_fault, subschemas(schema))), "")


def _types_fault(schema: Mapping[str, Json]) -> str:
    if "type" not in schema:
        return ""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    known = bool(kinds) and all(isinstance(kind, str) and kind in SCHEMA_TYPES for kind in kinds)
    return "" if known else f"{schema['type']!r} is not valid under any of the given schemas"


def _shape_fault(schema: Mapping[str, Json]) -> str:
    for key in SUBSCHEMA_MAPS:
        if key in schema and not isinstance(schema[key], Mapping):
            return f"{schema[key]!r} is not of type 'object'"
    for key in SUBSCHEMA_LISTS:
        if key in schema and not (isinstance(schema[key], list) and schema[key]):
            return f"{schema[key]!r} is not a non-empty array"
    required = schema.get("required", [])
    names = isinstance(required, list) and all(isinstance(name, str) for name in required)
    if not names or len(set(required)) != len(required):
        return f"{required!r} is not an array of unique strings"
    enum = schema.get("enum", [])
    return "" if isinstance(enum, list) else f"{enum!r} is not of type 'array'"


def image_fault(media_type: Json, data: Json) -> str:
    """Why base64 ``data`` is no image of ``media_type``, "" when it is one."""
    if media_type not in MAGIC:
        return f"media type {media_type!r} is none of {', '.join(MAGIC)}"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return "invalid base64 data"
    if not content.startswith(MAGIC[media_type]):
        return f"the image was specified using the {media_type} media type, but it does not appear to be one"
    return "image exceeds 5 MB maximum" if len(content) > 5 * 1024 * 1024 else ""
