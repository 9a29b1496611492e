"""Schemas that a request brings itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema

from lettaweb.lib.text import UnfitError, clean_json, shorten
from tools.schema.errors import SchemaError
from tools.schema.walking import check_references, everything, rewritten, target

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
MAX_SIZE = 100_000
MAX_DEPTH = 64
MAX_PARTS = 4000
_REFUSED = ("$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$anchor")


def check_json_schema(schema: Any) -> None:
    """Refuse a function schema (name, description, parameters) that some model vendor would refuse.

    Raises :class:`SchemaError` whose message names what is wrong: the name, parameters that are no JSON
    schema of type object, references that leave the schema, more than 100,000 characters or 64 levels.
    """
    schema = _plain(schema)
    if not isinstance(schema, dict):
        raise SchemaError("Invalid json_schema: it must be an object")
    check_tool_name(schema.get("name"))
    if not isinstance(schema.get("description") or "", str):
        raise SchemaError("Invalid json_schema: the description must be a text")
    check_parameters(schema.get("parameters"))


def check_tool_name(name: Any) -> None:
    """Refuse a tool name that the strictest vendor refuses."""
    if not isinstance(name, str) or not name:
        raise SchemaError("Invalid json_schema: the name of the tool is missing")
    if not TOOL_NAME.fullmatch(name):
        raise SchemaError(
            f"Tool name '{shorten(name, 80)}' is not valid: use 1 to 64 of the characters a-z, A-Z, 0-9, '_' and '-'"
        )


def check_parameters(parameters: Any) -> None:
    """Refuse parameters that are no JSON schema of an object, or whose names vendors refuse."""
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise SchemaError("Invalid json_schema: parameters must be a JSON schema of type object")
    _check_size(parameters)
    _check_meta(parameters)
    _check_identifiers(parameters)
    check_references(parameters)
    for name in parameters.get("properties", {}):
        if not PROPERTY_NAME.fullmatch(name):
            raise SchemaError(
                f"Parameter name '{shorten(name, 80)}' is not valid: use 1 to 64 of the characters "
                "a-z, A-Z, 0-9, '_', '.' and '-'"
            )


def parameters_schema(args_json_schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a tool from the JSON schema of a pydantic model.

    Titles and defaults go, references are written out (but for models that hold themselves), and an
    optional field is no longer one of null, as absence says the same. Raises :class:`SchemaError`.
    """
    root = _plain(args_json_schema)
    top, open_ = model_of(root), [root["$ref"]] if "$ref" in root else []
    if top.get("type") != "object":
        raise SchemaError("Invalid args_json_schema: it must be a JSON schema of type object")
    check_references(root)
    simple = _Simple(root, open_)
    made = simple.of({word: part for word, part in top.items() if word not in ("$defs", "definitions", "description")})
    made = {"type": "object", "properties": {}, "required": [], **made}
    shared = simple.definitions()
    return {**made, "$defs": shared} if shared else made


def model_of(args_json_schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the model itself: one that holds itself stands behind a reference."""
    if not isinstance(args_json_schema, Mapping):
        raise SchemaError("Invalid args_json_schema: it must be a JSON schema of type object")
    found = target(args_json_schema["$ref"], args_json_schema) if "$ref" in args_json_schema else args_json_schema
    return found if isinstance(found, Mapping) else {}


@dataclass(slots=True)
class _Simple:
    """One rewriting of a schema: the references being written out, and those that hold themselves."""

    root: Mapping[str, Any]
    open: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    left: int = MAX_PARTS

    def of(self, schema: Any) -> dict[str, Any]:
        self.left -= 1
        if self.left < 0:
            raise SchemaError("Invalid args_json_schema: it is too large once its references are written out")
        if "$ref" in schema:
            return self._referred(schema)
        made = rewritten({word: part for word, part in schema.items() if word not in ("title", "default")}, self.of)
        if isinstance(made.get("properties"), dict):
            made["properties"] = {
                name: part if name in made.get("required", ()) else _without_null(part)
                for name, part in made["properties"].items()
            }
        return made

    def definitions(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while missing := [reference for reference in self.shared if _last(reference) not in made]:
            self.open = [missing[0]]
            made[_last(missing[0])] = self.of(target(missing[0], self.root))
        return made

    def _referred(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        reference = schema["$ref"]
        beside = {word: part for word, part in schema.items() if word not in ("$ref", "title", "default")}
        if reference in self.open:
            self.shared = [*dict.fromkeys([*self.shared, reference])]
            return {"$ref": f"#/$defs/{_last(reference)}", **beside}
        found = target(reference, self.root)
        self.open.append(reference)
        try:
            return {**(self.of(found) if isinstance(found, Mapping) else {}), **beside}
        finally:
            self.open.remove(reference)


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]


def _without_null(schema: Any) -> Any:
    branches = schema.get("anyOf") if isinstance(schema, dict) else None
    if not isinstance(branches, list) or {"type": "null"} not in branches:
        return schema
    rest = [branch for branch in branches if branch != {"type": "null"}]
    beside = {word: part for word, part in schema.items() if word != "anyOf"}
    return {**rest[0], **beside} if len(rest) == 1 and isinstance(rest[0], dict) else {"anyOf": rest, **beside}


def _plain(schema: Any) -> Any:
    try:
        return clean_json(schema, max_depth=MAX_DEPTH)
    except UnfitError as error:
        raise SchemaError(f"Invalid json_schema: {error}") from None


def _check_size(parameters: Mapping[str, Any]) -> None:
    if len(json.dumps(_plain(parameters), ensure_ascii=False)) > MAX_SIZE:
        raise SchemaError(f"Invalid json_schema: it is longer than {MAX_SIZE} characters")


def _check_meta(parameters: Mapping[str, Any]) -> None:
    try:
        jsonschema.Draft202012Validator.check_schema(parameters)
    except jsonschema.SchemaError as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise SchemaError(f"Invalid json_schema: {shorten(error.message, 300)} (at parameters/{where})") from None
    except RecursionError:
        raise SchemaError("Invalid json_schema: nested too deeply") from None


def _check_identifiers(parameters: Mapping[str, Any]) -> None:
    for number, part in enumerate(everything(parameters)):
        words = [word for word in _REFUSED if word in part] + (["$id"] if number and "$id" in part else [])
        if words:
            raise SchemaError(f"Invalid json_schema: the keyword {words[0]} is not supported")
