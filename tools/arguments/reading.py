"""From what a model sent as arguments to the object that it meant, or to an error; never to a guess."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from lettaweb.lib.text import MAX_DIGITS, UnfitError, clean_json, clean_text, shorten
from tools.arguments.errors import ArgumentsError
from tools.arguments.repairs import depth, unfenced, without_trailing_commas
from tools.arguments.shape import form_for, parameters_of, properties_of, required_of, takes_null

MAX_LENGTH = 1_000_000
MAX_DEPTH = 256
INTERNAL = ("request_heartbeat", "inner_thoughts", "thinking")
_BOM = "\ufeff"
_SHOWN = 60
_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


def parse(given: object, *, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call: JSON text, its bytes, or the object that some servers send ready-made.

    Nothing, blanks and null are no arguments. A byte order mark, a code fence around everything and
    trailing commas are taken away; an object inside a JSON string is unwrapped once. Anything else that is
    no JSON object raises :class:`ArgumentsError`, and so does the same key twice: a person who approves
    must see the value that runs. With ``schema``, a null for an optional argument that may not be null is
    left out, as strict function calling writes absence that way.
    """
    value = given if given is None or isinstance(given, Mapping) else _read(_text(given))
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentsError(f"The arguments must be a JSON object, not {_kind(value)}.")
    try:
        made: dict[str, Any] = clean_json(dict(value), max_depth=MAX_DEPTH)
        return made if schema is None else _without_nulls(made, schema, parameters_of(schema))
    except (UnfitError, RecursionError) as error:
        raise ArgumentsError(f"The arguments cannot be used: {_reason(error)}.") from None


def strip_internal(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> tuple[dict[str, Any], bool | None]:
    """``arguments`` without the keys that steer the loop, and what ``request_heartbeat`` said.

    A key that the tool itself declares stays, and says nothing about the loop.
    """
    own = properties_of(schema)
    taken = {name for name in INTERNAL if name not in own}
    heartbeat = _truth(arguments.get("request_heartbeat")) if "request_heartbeat" in taken else None
    return {name: value for name, value in arguments.items() if name not in taken}, heartbeat


def _text(given: object) -> str:
    if isinstance(given, bytes | bytearray):
        return bytes(given).decode("utf-8", "replace")
    if isinstance(given, str):
        return given
    raise ArgumentsError(f"The arguments must be a JSON object, not {_kind(given)}.")


def _read(text: str) -> Any:
    value = _decoded(text)
    if not isinstance(value, str):
        return value
    inner = _decoded(value)  # the JSON text of an object, sent as a JSON string
    if isinstance(inner, dict):
        return inner
    raise ArgumentsError("The arguments must be a JSON object, not a text.")


def _decoded(text: str) -> Any:
    if len(text) > MAX_LENGTH:
        raise ArgumentsError(f"The arguments are longer than {MAX_LENGTH} characters.")
    text = unfenced(clean_text(text).removeprefix(_BOM).strip())
    if not text:
        return None
    if depth(text) > MAX_DEPTH:
        raise ArgumentsError(f"The arguments are nested more than {MAX_DEPTH} levels deep.")
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        return _repaired(text, error)


def _repaired(text: str, error: json.JSONDecodeError) -> Any:
    repaired = without_trailing_commas(text)
    if repaired != text:
        try:
            return _loads(repaired)
        except json.JSONDecodeError as again:
            error = again
    near = shorten(text[max(error.pos - 20, 0) : error.pos + 20], _SHOWN)
    raise ArgumentsError(
        f"The arguments are not valid JSON: {error.msg} (line {error.lineno}, column {error.colno}, near {near!r}). "
        "Nothing was run; send one complete JSON object."
    ) from None


def _loads(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise ArgumentsError("The arguments are nested too deeply.") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ArgumentsError(f"The arguments hold the key '{shorten(name, _SHOWN)}' twice.")
        made[name] = value
    return made


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ArgumentsError(f"The arguments hold an integer of more than {MAX_DIGITS} digits.")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ArgumentsError(f"The arguments hold a number that is out of range: {shorten(text, _SHOWN)}.")
    return value


def _constant(name: str) -> Any:
    raise ArgumentsError(f"The arguments are not valid JSON: {name} is no JSON value.")


def _without_nulls(arguments: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    properties = properties_of(schema)
    required = required_of(schema)
    made: dict[str, Any] = {}
    for name, value in arguments.items():
        part = properties.get(name)
        if not isinstance(part, Mapping):
            made[name] = value
        elif value is not None:
            made[name] = _deep_without_nulls(value, part, root)
        elif name in required or takes_null(part):
            made[name] = None
    return made


def _deep_without_nulls(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict | list):
        return value
    form = form_for(value, schema, root)
    if isinstance(value, dict):
        return _without_nulls(value, form, root)
    items = form.get("items")
    if not isinstance(items, Mapping) or "prefixItems" in form:
        return value
    return [_deep_without_nulls(item, items, root) for item in value]


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    return words.get(value.strip().lower()) if isinstance(value, str) else None


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
