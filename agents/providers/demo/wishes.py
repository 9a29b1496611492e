"""What a message asks the demo model to do: which tools to call with which arguments; rules only, pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.providers.base import ToolSpec
from agents.providers.lines import load_object, mapping_of

QUOTED = re.compile(r"""(?<!\w)'((?:[^']|(?<=\w)'(?=\w))*)'(?!\w)|"([^"]*)"|`([^`]*)`|“([^”]*)”""")
NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w])")
NEGATED = re.compile(r"\b(don't|don’t|do not|never|without|not)\b[^.!?\n]{0,25}$", re.IGNORECASE)
NAMED = re.compile(
    r"\b(?:call|use|run|invoke)\s+(?:the\s+)?[`'\"]?(\w[\w.-]*_[\w.-]*|\w[\w.-]*(?=[`'\"]?\s+tool\b))", re.IGNORECASE
)
TIMES = re.compile(r"\b(\d+)\s+times\b", re.IGNORECASE)
MAX_TIMES = 10
PLACE = re.compile(r"\b(?:for|in|at|to|about|of|named|called)\s+((?:[A-Z][\w'-]*)(?:\s+[A-Z][\w'-]*)*)")
TRUE = frozenset({"true", "yes", "on"})
FALSE = frozenset({"false", "no", "off"})
HEARTBEAT = "request_heartbeat"
THOUGHTS = ("thinking", "inner_thoughts")
FILLING = frozenset(
    ("a an the and or but with then please tool it that this of for to in is as on at").split()  # noqa: SIM905
)
VALUE = r"""('[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|-?\d+(?:\.\d+)?|[\w@./-]+)"""
GIVEN = r"""\b[`'"]?\s*(?:=|:|\bis\b|\bof\b|\bto\b|\bas\b|\bset to\b)?\s*"""
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool to call."""

    tool: ToolSpec
    arguments: Mapping[str, Any]


def wishes(text: str, tools: Sequence[ToolSpec]) -> list[Wish]:
    """The calls that ``text`` asks for, in its order: one for each place that names a tool on offer."""
    places = sorted(_mentions(text, tools))
    found = []
    for number, (start, end, at) in enumerate(places):
        if NEGATED.search(text[:start]):
            continue
        after = places[number + 1][0] if number + 1 < len(places) else len(text)
        words = text[:start] * (number == 0) + " " + text[end:after]
        found += [Wish(tools[at], arguments(tools[at], piece)) for piece in _rounds(words)]
    return found


def _rounds(words: str) -> Iterator[str]:
    """The words of each call: "3 times" makes three, each with a quoted value of its own as far as they go."""
    times = TIMES.search(words)
    if not times:
        yield words
        return
    words = TIMES.sub(" ", words)
    quoted = [match.span() for match in QUOTED.finditer(words)]
    for number in range(min(int(times[1]), MAX_TIMES)):
        kept = quoted[min(number, len(quoted) - 1)] if quoted else (0, 0)
        yield "".join(sign for at, sign in enumerate(words) if _shown(at, kept, quoted))


def _shown(at: int, kept: tuple[int, int], quoted: Sequence[tuple[int, int]]) -> bool:
    """Whether the character at this place is outside of quotes or inside the kept one."""
    return kept[0] <= at < kept[1] or not any(start <= at < end for start, end in quoted)


def missing(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    """Names of tools that ``text`` asks for and that are not on offer."""
    offered = {tool.name.lower() for tool in tools}
    named = (match[1] for match in NAMED.finditer(text) if not NEGATED.search(text[: match.start()]))
    return [name for name in dict.fromkeys(named) if name.lower() not in offered]


def _mentions(text: str, tools: Sequence[ToolSpec]) -> Iterator[tuple[int, int, int]]:
    """(start, end, number of the tool) of every mention; where two overlap, the longer name is meant."""
    taken: list[tuple[int, int]] = []
    for at in sorted(range(len(tools)), key=lambda number: -len(tools[number].name)):
        words = re.escape(tools[at].name).replace("_", "[_ -]")
        for match in re.finditer(rf"(?<![\w.]){words}(?!\w)", text, re.IGNORECASE):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                yield match.start(), match.end(), at


# --- arguments ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Words:
    """The words around a mention, with the values that nobody took yet."""

    text: str
    quoted: list[str]
    numbers: list[str]


def arguments(tool: ToolSpec, text: str) -> dict[str, Any]:
    """Arguments that fit the tool's schema: named ones first, then values in their order, then fillers."""
    whole = next((value for piece in _objects(text) if (value := load_object(piece)) is not None), None)
    if whole is not None:
        return dict(whole)
    quoted = [next(filter(None, groups), "") for groups in QUOTED.findall(text)]
    bare = QUOTED.sub(" ", text)
    words = _Words(text, quoted, NUMBER.findall(bare))
    schema = tool.parameters
    properties = {name: _resolved(inner, schema) for name, inner in mapping_of(schema.get("properties")).items()}
    required = schema.get("required") or ()
    chosen = {name: _named(name, inner, words) for name, inner in properties.items()}
    for name, inner in properties.items():
        if chosen[name] is None and name in required:
            chosen[name] = _taken(name, inner, words, tool.name)
    return {name: value for name, value in chosen.items() if value is not None}


def _objects(text: str) -> Iterator[str]:
    """The pieces of the text that look like JSON objects."""
    for start in (at for at, sign in enumerate(text) if sign == "{"):
        end = text.rfind("}")
        if end > start:
            yield text[start : end + 1]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference or a choice of schemas stands for, as far as a rule can tell."""
    found = mapping_of(schema)
    for _ in range(5):
        ref = found.get("$ref")
        if isinstance(ref, str):
            found = mapping_of(mapping_of(root.get("$defs")).get(ref.rpartition("/")[2]))
        elif isinstance(found.get("anyOf"), list) and "type" not in found:
            found = next((mapping_of(one) for one in found["anyOf"] if mapping_of(one).get("type") != "null"), {})
    return found


def _named(name: str, schema: Mapping[str, Any], words: _Words) -> Any:
    """The value that the words give this parameter by its name: "city 'Oslo'", "sides: 16", "16 sides"."""
    if name in (HEARTBEAT, *THOUGHTS):
        return None
    label = re.escape(name).replace("_", "[_ ]")
    found = re.search(rf"(?<!\w){label}{GIVEN}{VALUE}", words.text, re.IGNORECASE)
    if found:
        taken = _read(found[1], schema)
        if taken is not None:
            _use(found[1], words)
            return taken
    if _kind(schema) in ("integer", "number"):
        stem = re.escape(name.rpartition("_")[2].rstrip("s"))
        counted = re.search(rf"(-?\d+(?:\.\d+)?)[ -]{stem}\w*", words.text, re.IGNORECASE)
        if counted:
            _use(counted[1], words)
            return _read(counted[1], schema)
    return None


def _use(piece: str, words: _Words) -> None:
    bare = piece.strip("'\"`")
    for values in (words.quoted, words.numbers):
        if bare in values:
            values.remove(bare)
            return


def _taken(name: str, schema: Mapping[str, Any], words: _Words, tool: str) -> Any:
    """A value for a required parameter that nobody named: from the words in their order, else a filler."""
    kind = _kind(schema)
    if name == HEARTBEAT:
        return tool != "send_message"
    if name in THOUGHTS:
        return f"I was asked to call {tool}."
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        said = (
            value for value in schema["enum"] if re.search(rf"\b{re.escape(str(value))}\b", words.text, re.IGNORECASE)
        )
        return next(said, schema["enum"][0])
    if kind in ("integer", "number"):
        return _read(words.numbers.pop(0), schema) if words.numbers else schema.get("minimum", 1)
    if kind == "boolean":
        return True
    if kind == "array":
        values, words.quoted = words.quoted, []
        return [value for text in values if (value := _read(text, mapping_of(schema.get("items")))) is not None]
    if kind == "object":
        inner = ToolSpec(tool, "", schema)
        return arguments(inner, words.text) if schema.get("properties") else {}
    return words.quoted.pop(0) if words.quoted else _plain(words.text)


def _plain(text: str) -> str:
    """A text parameter's value when nothing is quoted: a name after a preposition, else the words themselves."""
    found = PLACE.search(text)
    return found[1] if found else " ".join(text.split())[:MAX_TEXT] or "demo"


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    return kind if isinstance(kind, str) else "object" if "properties" in schema else "string"


def _read(piece: str, schema: Mapping[str, Any]) -> Any:
    """The piece as a value of the schema's type, None when it is none."""
    kind, bare = _kind(schema), piece.strip("'\"`")
    if kind in ("integer", "number"):
        try:
            return int(bare) if kind == "integer" else json.loads(bare)
        except ValueError:
            return None
    if kind == "boolean":
        return True if bare.lower() in TRUE else False if bare.lower() in FALSE else None
    if kind == "array":
        try:
            value = json.loads(piece.replace("'", '"'))
        except ValueError:
            return None
        return value if isinstance(value, list) else None
    if kind == "object" or (bare == piece and bare.lower() in FILLING):
        return None
    return bare if piece[:1] in "'\"`" or "enum" not in schema or bare in schema["enum"] else None
