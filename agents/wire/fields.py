"""A call's arguments and its fate in words for people: labels from the schema, values as texts, secrets masked.

All texts are plain: whoever shows them escapes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.models import CallState, ToolCall
from agents.models.toolcall import Outcome
from agents.wire import redact
from agents.wire.sentences import human
from lettaweb.lib.text import shorten
from tools.arguments.shape import properties_of

LONGEST_TEXT = 20_000
LONGEST_NOTE = 400


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as it is shown. ``kind``: text, json, odd (null, blank, left out) or masked.

    ``before`` is what the model had proposed where a person changed it.
    """

    name: str
    label: str
    note: str
    text: str
    kind: str = "text"
    before: str | None = None


def schema_of(call: ToolCall) -> Mapping[str, Any]:
    """The JSON schema of the call's arguments, {} when nobody knows it; reads ``call.step.run`` for client tools."""
    return redact.of_call(call).schema


def label_of(name: str, schema: Any) -> str:
    """What an argument is called on screens: the schema's title, else its name in words."""
    title = schema.get("title") if isinstance(schema, Mapping) else None
    text = title if isinstance(title, str) and title.strip() else human(name)
    return text[:1].upper() + text[1:]


def note_of(schema: Any) -> str:
    found = schema.get("description") if isinstance(schema, Mapping) else None
    return shorten(found, LONGEST_NOTE) if isinstance(found, str) else ""


def read(text: str) -> dict[str, Any]:
    """Stored arguments as an object; a text that is none (no call that waits has one) stands under ""."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"": text}
    return found if isinstance(found, dict) else {"": found}


def fields_of(call: ToolCall, revealed: Mapping[str, Any] | None = None) -> list[Field]:
    """Every argument that runs, in the order of the schema; ``revealed``: the arguments without masks."""
    now = redact.arguments_of(call) if revealed is None else dict(revealed)
    before = now if call.edited_arguments is None or revealed is not None else redact.proposed_of(call)
    known = properties_of(schema_of(call))
    order = [*[name for name in known if name in now], *[name for name in now if name not in known]]
    fields = [_field(name, known.get(name), now[name], _before(name, before, now)) for name in order]
    gone = [name for name in before if name not in now]
    return fields + [
        Field(name, label_of(name, known.get(name)), "", "left out", "odd", value_text(before[name])[0])
        for name in gone
    ]


def absent(call: ToolCall) -> list[str]:
    """The labels of the arguments that the call leaves out."""
    given = read(call.runs_with)
    return [label_of(name, part) for name, part in properties_of(schema_of(call)).items() if name not in given]


def _field(name: str, part: Any, value: Any, before: str | None) -> Field:
    text, kind = value_text(value)
    return Field(name, label_of(name, part), note_of(part), text, kind, before)


def _before(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if name not in before:
        return "left out"
    was = value_text(before[name])[0]
    return was if was != value_text(now[name])[0] else None


def value_text(value: Any) -> tuple[str, str]:
    """A value as a text and the kind that the text is of."""
    if value == redact.MASK:
        return redact.MASK, "masked"
    if isinstance(value, str):
        return (shown_text(value), "text") if value.strip() else (_blank(value), "odd")
    if value is None:
        return "nothing (null)", "odd"
    if isinstance(value, bool):
        return "Yes" if value else "No", "text"
    if isinstance(value, dict | list):
        return shown_text(json.dumps(value, ensure_ascii=False, indent=2)), "json"
    return json.dumps(value), "text"


def _blank(value: str) -> str:
    return f"{len(value)} blank characters" if value else "empty text"


def shown_text(text: str) -> str:
    """A text as a screen shows it: its beginning, and how much more there is."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… and {len(text) - LONGEST_TEXT:,} more characters"


def raw_json(call: ToolCall, revealed: Mapping[str, Any] | None = None) -> str:
    """The arguments that run as JSON, masked unless ``revealed``."""
    shown = redact.arguments_of(call) if revealed is None else revealed
    return shown_text(json.dumps(shown, ensure_ascii=False, indent=2))


# --- what became of it -------------------------------------------------------------------------------

_OUTCOMES = {
    Outcome.DENIED: ("Denied", "bad"),
    Outcome.EXPIRED: ("Expired", "odd"),
    Outcome.CANCELLED: ("Cancelled", "odd"),
    Outcome.REFUSED: ("Refused by a rule", "bad"),
    Outcome.INTERRUPTED: ("Interrupted, outcome unknown", "odd"),
}
_STATES = {
    CallState.PENDING: ("Waiting", "odd"),
    CallState.UNKNOWN: ("Outcome unknown", "bad"),
    CallState.STARTED: ("Approved, running", "ok"),
}


def state_words(call: ToolCall) -> tuple[str, str]:
    """What became of a call, in words of its own for every outcome, and their tone: ok, bad or odd."""
    if call.state != CallState.DONE:
        return _STATES.get(CallState(call.state), ("Approved, not run yet", "ok"))
    if call.outcome in _OUTCOMES:
        return _OUTCOMES[Outcome(call.outcome)]
    if call.outcome == Outcome.ANSWERED:
        return ("Answered", "ok") if call.result_ok else ("Answered with an error", "bad")
    how = "Approved with changes" if call.edited_arguments is not None else "Approved" if call.gated else "Not gated"
    return (f"{how}, done", "ok") if call.result_ok else (f"{how}, but it failed", "bad")
