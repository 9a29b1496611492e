"""Arguments as one text, the same for equal arguments whatever database they went through."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no blanks, plain Unicode, integers exact.

    Numbers are written without exponent: PostgreSQL gives 1e22 back as an integer, and the text must not
    change by that. Raises ValueError for NaN and Infinity, TypeError for what JSON does not know.
    """
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, Mapping):
        return "{" + ",".join([f"{canonical(name)}:{canonical(value[name])}" for name in sorted(value)]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([canonical(item) for item in value]) + "]"
    raise TypeError(f"{type(value).__name__} is not JSON")


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON in UTF-8, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()


def _decimal(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("NaN and Infinity are not JSON")
    if value == 0:
        return "0.0"  # no minus: databases do not keep it
    return format(Decimal(repr(value)), "f")
