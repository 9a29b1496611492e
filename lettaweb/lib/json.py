"""JSON at the border: strict in, always valid out.

``loads`` refuses what databases, browsers and other parsers choke on; ``dumps`` writes what every one of
them reads.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from lettaweb.lib.text import clean, clean_text

MAX_DEPTH = 100
MAX_DIGITS = 308  # a longer integer overflows every double that it meets later on

_ODD_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_LINE_ENDS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}


class BadJson(ValueError):
    """A text that is not JSON as we take it; the message says why, in words for a client."""


def loads(data: bytes) -> Any:
    """The value of a JSON text in UTF-8 (a byte order mark is allowed).

    NUL characters inside strings are dropped, lone surrogates become U+FFFD. Raises :class:`BadJson` for
    anything else that is not plain JSON: NaN, Infinity, numbers out of range, the same key twice in one
    object, invalid UTF-8, more than ``MAX_DEPTH`` levels.
    """
    value = _parse(_decode(data))
    _check_depth(data, value)
    return clean(value) if _ODD_ESCAPE.search(data) else value


def dumps(value: Any) -> str:
    """Compact JSON that is valid UTF-8 and has no line ends; non-finite numbers become null.

    ``value`` may hold what :mod:`json` takes. Raises TypeError for other types.
    """
    try:
        text = _encode(value)
    except ValueError:
        value = _finite(value)
        text = _encode(value)
    # Searching is what costs in a long text; nearly all are plain, and neither question reads character by character.
    return text if text.isascii() else _readable(text, value)


def _readable(text: str, value: Any) -> str:
    """``text``, which encodes ``value``, without lone surrogates and line ends."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _encode(clean(value))
    for end, escaped in _LINE_ENDS.items():
        text = text.replace(end, escaped)
    return text


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadJson(f"the body is not valid UTF-8 (byte {error.start})") from None


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise BadJson(f"nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"not valid JSON: {error.msg} at line {error.lineno} column {error.colno}") from None


def _check_depth(data: bytes, value: Any) -> None:
    # Counting brackets is quick and settles it for nearly every body; only a suspect is walked.
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for parent in level for item in _children(parent) if isinstance(item, dict | list)]
        if not level:
            return
    raise BadJson(f"nested more than {MAX_DEPTH} levels deep")


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadJson(f"the key '{clean_text(twice)[:80]}' stands twice in one object")
    return found


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise BadJson("a number is out of range")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadJson("a number is out of range")
    return value


def _constant(name: str) -> Any:
    raise BadJson(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_float=_number, parse_constant=_constant)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_finite_key(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _finite_key(key: Any) -> Any:
    return str(key) if isinstance(key, float) and not math.isfinite(key) else key
