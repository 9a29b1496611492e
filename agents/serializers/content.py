"""Reads message content: a text, or parts of text and images. Nothing is fetched."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lettaweb.lib.problems import Problem

IMAGE_TYPES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
MAX_IMAGE = 5 * 1024 * 1024  # bytes; what the strictest vendor takes
_DATA_URL = re.compile(r"data:(image/[a-z+.-]+);base64,(.*)", re.DOTALL)

Part = dict[str, Any]


def parts_of(content: Any, where: str, *, blank: bool = False) -> list[Part]:
    """The stored parts of ``content``; a :class:`Problem` 422 for what is no content or says nothing.

    ``blank``: whether content may say nothing.
    """
    if isinstance(content, str):
        parts: list[Part] = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        parts = [_part(given, f"{where}[{number}]") for number, given in enumerate(content)]
    else:
        raise Problem(422, f"{where}: a text or a list of content parts is required")
    said = [part for part in parts if part["type"] != "text" or part["text"].strip()]
    if not said and not blank:
        raise Problem(422, f"{where}: the message is empty")
    return said or parts


def _part(given: Any, where: str) -> Part:
    if isinstance(given, str):
        return {"type": "text", "text": given}
    if not isinstance(given, Mapping):
        raise Problem(422, f"{where}: a content part is expected")
    kind = given.get("type", "text")
    if kind == "text":
        return _text(given, where)
    if kind == "image":
        return _image(given.get("source"), where)
    if kind == "image_url":
        return _image_url(given.get("image_url"), where)
    raise Problem(422, f"{where}.type: must be text or image")


def _text(given: Mapping[str, Any], where: str) -> Part:
    if not isinstance(given.get("text"), str):
        raise Problem(422, f"{where}.text: a text is required")
    return {"type": "text", "text": given["text"]}


def _image(source: Any, where: str) -> Part:
    if not isinstance(source, Mapping):
        raise Problem(422, f"{where}.source: the source of the image is required")
    if source.get("url") or source.get("type") == "url":
        return _remote(source.get("url"), where)
    return _inline(source.get("media_type"), source.get("data"), where)


def _image_url(given: Any, where: str) -> Part:
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str):
        raise Problem(422, f"{where}.image_url: a URL is required")
    inline = _DATA_URL.fullmatch(url)
    return _inline(inline[1], inline[2], where) if inline else _remote(url, where)


def _remote(url: Any, where: str) -> Part:
    try:
        good = isinstance(url, str) and urlsplit(url).scheme == "https" and bool(urlsplit(url).hostname)
    except ValueError:
        good = False
    if not good:
        raise Problem(422, f"{where}: images by URL must be https")
    return {"type": "image", "media_type": "", "data": "", "url": url}


def _inline(media_type: Any, data: Any, where: str) -> Part:
    if media_type not in IMAGE_TYPES:
        raise Problem(422, f"{where}: images must be {', '.join(IMAGE_TYPES)}")
    try:
        raw = base64.b64decode(data if isinstance(data, str) else "", validate=True)
    except (binascii.Error, ValueError):
        raise Problem(422, f"{where}: the image is not valid base64") from None
    if not raw.startswith(IMAGE_TYPES[media_type]) or len(raw) < 32:
        raise Problem(422, f"{where}: the image is empty, cut off or not of type {media_type}")
    if len(raw) > MAX_IMAGE:
        raise Problem(422, f"{where}: the image is larger than {MAX_IMAGE // 1024 // 1024} MB")
    return {"type": "image", "media_type": media_type, "data": data, "url": ""}
