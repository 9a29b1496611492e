"""Reads what a call left behind. A tool can write anything there: every byte is hostile until it was checked here."""

from __future__ import annotations

import json
import os
import re
from typing import Any

DEEPEST = 80
WIDEST_INTEGER = 64
# Escape sequences of terminals (CSI, OSC, two-byte), then control characters other than tab and line feed.
TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SURROGATE = re.compile(r"[\ud800-\udfff]")


class BadFrame(Exception):
    """The frame cannot be read; the text says why."""


def clean_text(text: str) -> str:
    """Return ``text`` without NUL and other control characters, terminal sequences and lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    text = TERMINAL.sub("", text.replace("\r\n", "\n"))
    return SURROGATE.sub("\ufffd", CONTROL.sub("", text.replace("\r", "\n")))


def clean_value(value: Any, depth: int = 0) -> Any:
    """Return a JSON value that every database takes; raises BadFrame when it is nested too deeply."""
    if depth > DEEPEST:
        raise BadFrame("the result is nested too deeply")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, depth + 1) for item in value]
    if isinstance(value, float):
        return value if value - value == 0 else _odd_float(value)
    if isinstance(value, int) and value.bit_length() >= WIDEST_INTEGER:
        return str(value)
    return value


def _odd_float(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def read(descriptor: int, limit: int) -> bytes:
    """Return at most ``limit`` bytes of a file, from its start."""
    parts: list[bytes] = []
    position = 0
    while position < limit and (part := os.pread(descriptor, limit - position, position)):
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def parse(descriptor: int, limit: int) -> dict[str, Any] | None:
    """Return the checked frame, None when there is none; raises BadFrame."""
    size = os.fstat(descriptor).st_size
    if size > limit:
        raise BadFrame(f"the result frame has {size} bytes, the limit is {limit}")
    data = read(descriptor, limit)
    if not data:
        return None
    try:
        content = json.loads(data.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise BadFrame("the result is nested too deeply") from None
    except ValueError as error:
        raise BadFrame(f"the result is no JSON ({type(error).__name__})") from None
    return _checked(content)


def _checked(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or not isinstance(content.get("ok"), bool):
        raise BadFrame("the result frame has no known form")
    if not content["ok"]:
        kind, message = content.get("type"), content.get("message")
        if not isinstance(kind, str) or not isinstance(message, str):
            raise BadFrame("the result frame has no known form")
        return {"ok": False, "type": clean_text(kind), "message": clean_text(message)}
    blocks = content.get("blocks")
    return {"ok": True, "value": clean_value(content.get("value")), "blocks": _blocks(blocks)}


def _blocks(blocks: Any) -> dict[str, str]:
    if not isinstance(blocks, dict):
        raise BadFrame("the result frame has no known form")
    return {
        clean_text(label): clean_text(value) for label, value in blocks.items() if isinstance(value, str)
    }  # a value that is no text cannot come from the tool's side of the contract


def output(descriptor: int, limit: int) -> str:
    """Return what was printed, cleaned, up to twice ``limit`` bytes: it is cut after redaction."""
    return clean_text(read(descriptor, 2 * limit).decode("utf-8", "replace"))


def cut(text: str, limit: int) -> str:
    """Cut a text to ``limit`` bytes at a whole character, with a mark."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[:limit].decode("utf-8", "ignore") + f"\n... [cut at {limit} bytes]"
