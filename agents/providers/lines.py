"""Bytes of a vendor's answer turned into lines, events and JSON values; pure, knows no vendor.

Lines end at LF, CRLF or CR only: U+2028 and the like are text, unlike what ``str.splitlines`` thinks of them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

BOM = b"\xef\xbb\xbf"
SURROGATE = re.compile("[\ud800-\udfff]")


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _name: None)  # one for all: making it costs


class Lines:
    """Splits pieces of bytes into lines, however the pieces are cut."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that ``piece`` completes, without their ends."""
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
        if piece:
            self._after_cr = piece.endswith(b"\r")
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            if piece:
                self._pending.append(piece)
            return []
        lines = b"".join((*self._pending, piece)).split(b"\n")
        rest = lines.pop()
        self._pending = [rest] if rest else []
        return lines

    def rest(self) -> list[bytes]:
        """The last line, when it has no end."""
        last, self._pending = b"".join(self._pending), []
        return [last] if last else []


class Events:
    """Splits pieces of bytes into the data of server-sent events."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []
        self._first = True
        self.seen_bytes = False
        self.seen_event = False

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that ``piece`` completes; bytes that are no UTF-8 become U+FFFD."""
        self.seen_bytes = self.seen_bytes or bool(piece)
        return self._take(self._lines.feed(piece))

    def rest(self) -> list[str]:
        """The data of a last event that no blank line closed."""
        return self._take([*self._lines.rest(), b""])

    def _take(self, lines: list[bytes]) -> list[str]:
        found = []
        if self._first and lines:
            self._first, lines = False, [lines[0].removeprefix(BOM), *lines[1:]]
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                found.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data = []
                self.seen_event = True
        return found


class Joiner:
    """Joins pieces of text whose surrogate pairs were cut in half by JSON escapes."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be said by now; a first half of a pair is kept back for the next piece."""
        if not self._held and piece.isascii():
            return piece
        piece, self._held = self._held + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._held = piece[:-1], piece[-1]
        return clean(piece)

    def rest(self) -> str:
        """What was kept back and found no second half."""
        held, self._held = self._held, ""
        return clean(held)


def clean(text: str) -> str:
    """The text as valid Unicode: surrogate pairs joined, single halves replaced by U+FFFD."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def load(text: str) -> Any:
    """The JSON value of a vendor's text; raises ValueError, also for what is nested too deeply."""
    try:
        if text[:1] == "{" and text[-1:] == "}":  # without white space around it, as vendors write: the shorter way
            value, end = DECODER.raw_decode(text)
            if end == len(text):
                return value
        return DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def load_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object of this text, None when it is anything else."""
    try:
        value = load(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def load_line(line: bytes) -> Mapping[str, Any] | None:
    """The JSON object of a line of a result file, None when it is anything else."""
    return load_object(line.removeprefix(BOM).decode("utf-8", "replace"))


def dump(value: Any) -> bytes:
    """The JSON body of a request."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def text_of(value: Any) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """The value if it is a count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def mapping_of(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def arguments_of(value: Any) -> str:
    """The JSON text of a call's arguments, however a vendor wrote them: text, an object, nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
