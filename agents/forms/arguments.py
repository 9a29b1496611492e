"""A call's arguments as a form, typed by the tool's schema, and back without losing anything.

What nobody touched goes back as the very value that was frozen; only a changed field is read anew. So a form
that is sent as it came gives identical JSON: 1.0 stays 1.0, absent stays absent, null stays null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.models import ToolCall
from agents.wire.fields import label_of, note_of, read, schema_of
from agents.wire.redact import arguments_of
from lettaweb.lib.json import BadJson, loads
from tools import arguments
from tools.arguments.shape import properties_of, required_of, takes_null

VALUE, NULL, ABSENT = "value", "null", "absent"
_WHOLE = re.compile(r"-?[0-9]{1,300}")


class Misfit(ValueError):
    """A typed text that is no value of its field; the text says why."""


@dataclass(frozen=True, slots=True)
class Box:
    """One argument in the form.

    ``kind``: text, number, choice, json or secret. ``how``: value, null or absent; ``hows`` are those that
    it may be. ``options`` of a choice are JSON texts with their labels. ``error`` stands beside the field.
    """

    name: str
    label: str
    note: str
    kind: str
    text: str
    how: str
    hows: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    error: str = ""
    whole: bool = False

    @property
    def rows(self) -> int:
        return min(16, 1 + self.text.count("\n") + len(self.text) // 80)


@dataclass(frozen=True, slots=True)
class Edited:
    """A form that came back. ``arguments`` is None when a field is wrong; ``changed``: not as it was frozen."""

    boxes: list[Box]
    arguments: dict[str, Any] | None
    changed: bool
    error: str = ""


def boxes_of(call: ToolCall) -> list[Box]:
    """The form for a call as it is."""
    given, schema = read(call.runs_with), schema_of(call)
    shown = arguments_of(call)
    known = properties_of(schema)
    names = [*known, *[name for name in given if name not in known]]
    required = set(required_of(schema))
    return [
        _box(
            name,
            _resolved(known.get(name, {}), schema),
            given,
            required=name in required,
            secret=_hidden(name, given, shown),
        )
        for name in names
    ]


def _hidden(name: str, given: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    return name in given and shown.get(name) != given[name]


def _box(name: str, schema: Mapping[str, Any], given: Mapping[str, Any], *, required: bool, secret: bool) -> Box:
    how = ABSENT if name not in given else NULL if given[name] is None else VALUE
    core = _core(schema)
    kind = "secret" if secret else _kind(core, given.get(name))
    hows = (
        VALUE,
        *([NULL] if how == NULL or (takes_null(schema) and kind != "json") else []),
        *([] if required else [ABSENT]),
    )
    return Box(
        name=name,
        label=label_of(name, schema),
        note=note_of(schema) or note_of(core),
        kind=kind,
        text=_text(kind, given.get(name)) if how == VALUE else "",
        how=how,
        hows=hows,
        options=tuple(_options(core)) if kind == "choice" else (),
        whole=core.get("type") == "integer",
    )


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema`` behind its references into ``root``."""
    for _ in range(20):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        schema = found
    return {}


def _core(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a value must be when it is not null."""
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        real = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") != "null"]
        return real[0] if len(real) == 1 else {}
    if isinstance(schema.get("type"), list):
        real_types = [word for word in schema["type"] if word != "null"]
        return {**schema, "type": real_types[0]} if len(real_types) == 1 else {}
    return schema


def _kind(core: Mapping[str, Any], value: Any) -> str:
    word = core.get("type")
    if isinstance(core.get("enum"), list) and (value is None or any(_same(value, one) for one in core["enum"])):
        return "choice"
    if word == "boolean" and (value is None or isinstance(value, bool)):
        return "choice"
    if word == "string" and (value is None or isinstance(value, str)):
        return "text"
    if word in ("integer", "number") and (
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    ):
        return "number"
    return "text" if not core and isinstance(value, str) else "json"


def _same(left: Any, right: Any) -> bool:
    return arguments.canonical(left) == arguments.canonical(right)


def _options(core: Mapping[str, Any]) -> list[tuple[str, str]]:
    if isinstance(core.get("enum"), list):
        values = [value for value in core["enum"] if value is not None]
        return [
            (arguments.canonical(value), value if isinstance(value, str) else json.dumps(value)) for value in values
        ]
    return [("true", "Yes"), ("false", "No")]


def _text(kind: str, value: Any) -> str:
    if kind == "secret":
        return ""
    if kind == "text":
        return str(value)
    if kind == "choice":
        return arguments.canonical(value)
    return json.dumps(value, ensure_ascii=False, indent=2 if kind == "json" else None)


# --- back from the browser ---------------------------------------------------------------------------


def edited(call: ToolCall, sent: Mapping[str, Any]) -> Edited:
    """Read the form that came back: ``arg:<name>`` is what was typed, ``how:<name>`` whether it is a value."""
    given, boxes = read(call.runs_with), list[Box]()
    made: dict[str, Any] = {}
    for shown in boxes_of(call):
        try:
            box, value = _read(shown, sent, given)
            if box.how != ABSENT:
                made[box.name] = value
        except Misfit as misfit:
            box = replace(_typed(shown, sent), error=str(misfit))
        boxes.append(box)
    if any(box.error for box in boxes):
        return Edited(boxes, None, changed=True)
    if _same(made, given):
        return Edited(boxes, given, changed=False)
    return _checked(boxes, made, schema_of(call))


def _typed(box: Box, sent: Mapping[str, Any]) -> Box:
    return replace(
        box, text=_lines(str(sent.get(f"arg:{box.name}", box.text))), how=str(sent.get(f"how:{box.name}", box.how))
    )


def _read(box: Box, sent: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Box, Any]:
    """The box as it was sent, and its value; a :class:`Misfit` when it has none."""
    if f"arg:{box.name}" not in sent and f"how:{box.name}" not in sent:
        return box, given.get(box.name)
    now = _typed(box, sent)
    if now.kind == "choice" and now.text in (NULL, ABSENT):
        now = replace(now, how=now.text, text="")
    elif now.how != VALUE and now.how == box.how and now.text.strip():
        now = replace(now, how=VALUE)  # whoever types means it, whatever the list beside it still says
    elif now.kind == "choice":
        now = replace(now, how=VALUE)
    if now.how not in now.hows:
        raise Misfit("This argument is required.")
    if now.how != VALUE:
        return now, None
    if box.how == VALUE and now.text == _lines(box.text):
        return now, given[box.name]
    return now, _parsed(now)


def _lines(text: str) -> str:
    """``text`` with the line ends that browsers send all made alike."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parsed(box: Box) -> Any:
    if box.kind in ("text", "secret"):
        return box.text
    if box.kind == "number":
        return _number(box.text.strip(), whole=box.whole)
    try:
        return loads(box.text.encode("utf-8", "replace"))
    except BadJson as error:
        raise Misfit(f"This is not JSON: {error}.") from None


def _number(text: str, *, whole: bool) -> int | float:
    if _WHOLE.fullmatch(text):
        return int(text)
    if whole:
        raise Misfit("A whole number is expected.")
    try:
        found = loads(text.encode("utf-8", "replace"))
    except BadJson:
        found = None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Misfit("A number is expected, such as 12 or 12.5.")
    return found


def _checked(boxes: list[Box], made: dict[str, Any], schema: Mapping[str, Any]) -> Edited:
    try:
        arguments.check(made, schema)
        return Edited(boxes, made, changed=True)
    except arguments.ArgumentsError as error:
        whole = str(error)
    told = [replace(box, error=_misfit_of(box, made, schema)) for box in boxes]
    return Edited(told, None, changed=True, error="" if any(box.error for box in told) else whole)


def _misfit_of(box: Box, made: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What is wrong with one argument by itself, "" when nothing is."""
    if box.name not in made:
        return ""
    shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    alone = {"type": "object", "properties": {box.name: properties_of(schema).get(box.name, {})}, **shared}
    try:
        arguments.check({box.name: made[box.name]}, alone)
    except arguments.ArgumentsError as error:
        return str(error)
    return ""
