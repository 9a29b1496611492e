"""Stored values as every vendor takes them: texts, names, arguments, images. Knows no order of messages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from agents.context.history import StoredPart
from agents.providers.base import ImagePart, ReasoningPart, RedactedReasoningPart, TextPart
from lettaweb.lib.text import clean_json, clean_text

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
IMAGE_LEFT_OUT = "[An image was left out: it has a form that models do not take.]"
UNNAMED = "unnamed_tool"

# Blanks, and what shows nothing: a text of these alone counts as blank.
_VISIBLE = re.compile("[^\\s\x00-\x20\xad\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_ODD_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)


def text_of(value: Any) -> str:
    """``value`` cleaned when it is a text that shows something, else ""."""
    if not isinstance(value, str) or not _VISIBLE.search(value):
        return ""
    return clean_text(value)


def tool_name(name: Any) -> str:
    """A name that shows something; characters that a vendor does not take are the provider's business."""
    return text_of(name).strip() or UNNAMED


def arguments_object(arguments: Any) -> str:
    """``arguments`` when they are the JSON text of an object, else "{}": the original stays stored."""
    if not isinstance(arguments, str):
        return "{}"
    text = clean_text(arguments)
    try:
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            return "{}"
        return json.dumps(clean_json(value)) if _ODD_ESCAPE.search(text) else text
    except (ValueError, RecursionError):
        return "{}"


def spoken(parts: Iterable[StoredPart]) -> Iterator[TextPart | ImagePart]:
    """The texts and images of a user message or of a result's content."""
    for part in parts:
        kind = part.get("type")
        if kind == "text" and (text := text_of(part.get("text"))):
            yield TextPart(text)
        elif kind == "image":
            yield image(part)


def image(part: StoredPart) -> ImagePart | TextPart:
    """The image, or a text in its place when no vendor would take it."""
    url, data, media_type = (str(part.get(key) or "") for key in ("url", "data", "media_type"))
    if found := _DATA_URL.match(url):
        url, data, media_type = "", url[found.end() :], found[1].lower()
    if data and media_type in IMAGE_TYPES and len(data) % 4 == 0 and data.isascii():
        return ImagePart(media_type=media_type, data=data)
    if url.startswith("https://") and not data:
        return ImagePart(url=clean_text(url))
    return TextPart(IMAGE_LEFT_OUT)


def reasoning(part: StoredPart) -> ReasoningPart | RedactedReasoningPart | None:
    """Reasoning that may go back to its vendor byte for byte; None for what is unsigned or not whole."""
    provider = str(part.get("provider") or "")
    if part.get("type") == "redacted":
        data = part.get("data")
        return RedactedReasoningPart(data, provider) if _whole(data) else None
    text, signature = part.get("text") or "", part.get("signature")
    # A text that cleaning would change no longer matches its signature.
    if not _whole(signature) or not isinstance(text, str) or clean_text(text) != text:
        return None
    return ReasoningPart(text, signature, provider)


def _whole(value: Any) -> TypeGuard[str]:
    """Whether this is a text that shows something and that cleaning would not change."""
    return bool(text_of(value)) and text_of(value) == value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return value


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_number)
