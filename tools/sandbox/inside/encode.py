"""Turns what a tool returned into plain JSON values; what has no JSON form becomes its text."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import numbers
import pathlib
import uuid
from collections.abc import Iterable, Mapping
from json import dumps  # taken now: a tool may replace json.dumps
from typing import Any

DEEPEST = 64
WIDEST_INTEGER = 64
TEXTUAL = (decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath)
DATED = (datetime.datetime, datetime.date, datetime.time)
BARE: tuple[tuple[Any, Any], ...] = ((str, str), (numbers.Integral, int), (numbers.Real, float))
LISTED = (list, tuple, set, frozenset)


class ResultTooDeep(ValueError):
    """The result is nested too deeply, or refers to itself."""

    __module__ = "builtins"  # tracebacks then show the bare name

    def __init__(self) -> None:
        super().__init__(f"the result is nested more than {DEEPEST} levels deep or refers to itself")


class ResultTooLarge(ValueError):
    """The result does not fit in the limit."""

    __module__ = "builtins"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the result is {size} bytes long, the limit is {limit}")


def plain(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as JSON; raises ResultTooDeep."""
    if value is None or value is True or value is False:
        return value
    if depth > DEEPEST:
        raise ResultTooDeep
    kind = type(value)
    if kind is str:
        return value
    if kind is int:
        return value if value.bit_length() < WIDEST_INTEGER else str(value)
    if kind is float:
        return value if value - value == 0 else _odd_float(value)
    return _structure(value, depth + 1)


def _odd_float(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _structure(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth) for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return plain(value.value, depth)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {str(key): plain(item, depth) for key, item in value._asdict().items()}
    if isinstance(value, LISTED):
        return _items(value, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth) for field in dataclasses.fields(value)}
    return _scalar(value, depth)


def _scalar(value: Any, depth: int) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json"), depth)
    if isinstance(value, DATED):
        return value.isoformat()
    if isinstance(value, TEXTUAL):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return _text(bytes(value))
    for kind, base in BARE:
        if isinstance(value, kind):
            return plain(base(value), depth)
    return str(value)


def _items(values: Iterable[Any], depth: int) -> list[Any]:
    return [plain(item, depth) for item in values]


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, DATED):
        return key.isoformat()
    return key if type(key) is str else str(key)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def frame(content: dict[str, Any], limit: int) -> bytes:
    """Return ``content`` as the bytes of a result frame; raises ResultTooLarge when it has more than ``limit``."""
    text = dumps(content, ensure_ascii=False, separators=(",", ":"))
    if len(text) > limit:
        raise ResultTooLarge(len(text), limit)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        raise ResultTooLarge(len(data), limit)
    return data
