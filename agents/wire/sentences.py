"""A waiting call in one sentence, in plain text and without secrets."""

from __future__ import annotations

import re
from typing import Any

from agents.models import CallState, ToolCall
from agents.wire import redact
from lettaweb.lib.json import dumps
from lettaweb.lib.text import shorten

MAX_VALUE = 60
MAX_TITLE = 160
_WORDS = re.compile(r"[_\-\s]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def human(name: str) -> str:
    """``refundOrder`` and ``refund_order`` as "refund order"."""
    return " ".join(word.lower() if not word[1:].isupper() else word for word in _WORDS.split(name) if word)


def title(call: ToolCall) -> str:
    """What would be done: "Refund order: order 20418, amount 500.00"."""
    verb = human(call.name) or call.name
    said = ", ".join(f"{human(name)} {_shown(value)}" for name, value in redact.arguments_of(call).items())
    whole = f"{verb[:1].upper()}{verb[1:]}" + (f": {said}" if said else "")
    return shorten(whole, MAX_TITLE)


def sentence(call: ToolCall) -> str:
    """Who wants what: "billing wants to refund order: order 20418, amount 500.00"."""
    what = title(call)
    if call.state == CallState.UNKNOWN:
        return f"Nobody knows whether this ran for {call.agent.name}: {what}"
    first = what[:1] if what[:2].isupper() else what[:1].lower()
    return f"{call.agent.name} wants to {first}{what[1:]}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, str):
        return shorten(" ".join(value.split()), MAX_VALUE) or "(empty)"
    return shorten(dumps(value), MAX_VALUE)
