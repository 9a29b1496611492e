"""A tool's result as the texts that the API, the people and the model see."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from lettaweb.lib.text import MAX_DIGITS, UnfitError, clean_json, clean_text

MAX_ERROR = 1000
MAX_REASON = 4000  # characters of a person's reason that the model is told; the decision keeps all of them
DEFAULT_LIMIT = 50_000
_HALVES = ("AM", "PM")


def as_text(value: Any) -> str:
    """A returned value as text: a text as it is, objects and lists as JSON, None as "None", others by ``str``.

    The text holds no NUL and no lone surrogate; NaN and Infinity inside objects become null.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict | list | tuple):
        return _json_text(value)
    return clean_text(_plain_text(value))


def truncate(text: str, limit: int) -> str:
    """The first ``limit`` characters of ``text`` with a note of its real length; a short one as it is.

    Characters are code points: none is ever cut in two.
    """
    if len(text) <= limit:
        return text
    return _cut(text, limit, "function output")


def error_text(name: str, exception: str, message: str) -> str:
    """What is told of an exception in the tool ``name``, at most 1000 characters."""
    return clean_text(f"Error executing function {name}: {exception}: {message}")[:MAX_ERROR]


def denial_text(reason: str | None) -> str:
    """What is told of a call that a person denied; of a reason longer than MAX_REASON the beginning, with a note."""
    told = reason if reason is None or len(reason) <= MAX_REASON else _cut(reason, MAX_REASON, "the reason")
    return clean_text(f"Error: request to call tool denied. User reason: {told}")


def _cut(text: str, limit: int, what: str) -> str:
    note = f"{what} was truncated since it exceeded the character limit ({len(text)} > {limit})"
    return f"{text[:limit]}... [NOTE: {note}]"


def for_model(text: str, ok: bool, now: datetime) -> str:
    """The JSON text that the model gets for a result. ``now`` is aware; its zone is the one shown."""
    result = {"status": "OK" if ok else "Failed", "message": clean_text(text), "time": _moment(now)}
    return json.dumps(result, indent=2, ensure_ascii=False)


def _json_text(value: Any) -> str:
    try:
        return json.dumps(clean_json(value, non_finite="null"), ensure_ascii=False)
    except (UnfitError, RecursionError) as error:
        return f"(a {type(value).__name__} that cannot be shown: {_reason(error)})"


def _plain_text(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        return hex(value)  # str() refuses integers of so many digits
    return str(value)


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _moment(now: datetime) -> str:
    offset = now.utcoffset()
    if offset is None:
        raise ValueError("the time of a result needs a zone")
    # Not strftime's %p: the process's locale may have no word for it.
    hour = now.hour % 12 or 12
    sign = "-" if offset < timedelta(0) else "+"
    minutes = abs(offset) // timedelta(minutes=1)
    clock = f"{hour:02}:{now.minute:02}:{now.second:02} {_HALVES[now.hour // 12]}"
    return f"{now:%Y-%m-%d} {clock} {now.tzname()}{sign}{minutes // 60:02}{minutes % 60:02}"
