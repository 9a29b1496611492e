"""Text and JSON values that every database, browser and model vendor takes; knows nothing of this project.

PostgreSQL refuses NUL and lone surrogates, JSON refuses NaN and Infinity, and a deep value ends parsers:
whatever comes from a model, a tool or a client passes here before it is stored or sent.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

MAX_DEPTH = 256
MAX_DIGITS = 4300  # Python refuses to turn longer integers into text and back
_TOO_BIG = 10**MAX_DIGITS
_NOT_PLAIN = re.compile("[\0\ud800-\udfff]")


class UnfitError(ValueError):
    """A value that JSON cannot carry; the message says why, in a short sentence."""


def clean_text(text: str) -> str:
    """``text`` without NUL; surrogate pairs are joined, lone surrogates become U+FFFD."""
    if (text.isascii() and "\0" not in text) or not _NOT_PLAIN.search(text):
        return text
    units = text.replace("\0", "").encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def clean(value: Any) -> Any:
    """``value`` with :func:`clean_text` done to all its texts, keys included; everything else as it is."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def clean_json(value: Any, *, max_depth: int = MAX_DEPTH, non_finite: Literal["error", "null"] = "error") -> Any:
    """A copy of ``value`` in plain JSON types: dict, list, str, int, float, bool, None.

    Texts and keys pass :func:`clean_text`. NaN and Infinity become None with ``non_finite="null"``.
    Raises :class:`UnfitError` for NaN and Infinity otherwise, more than ``max_depth`` levels of lists and
    dicts, integers of more than 4300 digits, keys that are no text or collide once cleaned, other types.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value, non_finite)
    if not isinstance(value, dict | list | tuple):
        raise UnfitError(f"a value of type {type(value).__name__} is not JSON")
    if max_depth < 1:
        raise UnfitError("nested too deeply")
    if isinstance(value, dict):
        return _object(value, max_depth - 1, non_finite)
    return _array(value, max_depth - 1, non_finite)


def shorten(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; a cut one ends in "…"."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def _number(value: int | float, non_finite: str) -> int | float | None:
    if isinstance(value, int):
        if abs(value) >= _TOO_BIG:
            raise UnfitError(f"an integer has more than {MAX_DIGITS} digits")
        return int(value)
    if math.isfinite(value):
        return float(value)
    if non_finite == "null":
        return None
    raise UnfitError("NaN and Infinity are not JSON")


# Loops instead of comprehensions: one frame a level keeps a deep value away from the recursion limit.
def _object(value: dict[Any, Any], max_depth: int, non_finite: Literal["error", "null"]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise UnfitError(f"a key of type {type(key).__name__} is not JSON")
        name = clean_text(key)
        if name in made:
            raise UnfitError(f"the key '{shorten(name, 80)}' stands twice in one object")
        made[name] = clean_json(item, max_depth=max_depth, non_finite=non_finite)
    return made


def _array(value: list[Any] | tuple[Any, ...], max_depth: int, non_finite: Literal["error", "null"]) -> list[Any]:
    made: list[Any] = []
    for item in value:
        made.append(clean_json(item, max_depth=max_depth, non_finite=non_finite))
    return made
