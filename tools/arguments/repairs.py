"""Repairs of JSON text that leave no doubt about what was meant."""

from __future__ import annotations

import re

_FENCE = re.compile(r"\A```[A-Za-z0-9_-]*[ \t]*\r?\n(.*)\r?\n?```\Z", re.DOTALL)
# A string that is never closed is one token to the end: the scan stays linear whatever the text.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)


_SHALLOW = 100  # so few brackets cannot be too deep, whatever their order


def unfenced(text: str) -> str:
    """The text inside a Markdown code fence that holds everything, else ``text`` itself."""
    found = _FENCE.match(text)
    return found[1].strip() if found else text


def without_trailing_commas(text: str) -> str:
    """``text`` without commas that follow a value and stand right before a closing bracket."""
    kept: list[str] = []
    position = 0
    before, comma = "", -1
    for found in _TOKEN.finditer(text):
        mark = found[0]
        if mark in "}]" and comma >= 0:
            kept.append(text[position:comma])
            position = comma + 1
        comma = found.start() if mark == "," and before not in ("", "{", "[", ",", ":") else -1
        before = mark
    return "".join([*kept, text[position:]])


def depth(text: str) -> int:
    """How deeply brackets are nested in ``text``, those inside strings left out; 0 when there are few."""
    if text.count("{") + text.count("[") <= _SHALLOW:
        return 0
    deepest = level = 0
    for found in _TOKEN.finditer(text):
        if found[0] in "{[":
            level += 1
            deepest = max(deepest, level)
        elif found[0] in "}]":
            level -= 1
    return deepest
