"""Images that a vendor refuses: they are left out of the request, first those that it would have to load itself.

A stored image that no vendor takes any more would otherwise end every later request of its conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from agents.providers.base import ChatMessage, ImagePart, ModelRequest, Part, ResultPart, TextPart

Images = Literal["all", "embedded", "none"]
LEFT_OUT = "[An image was left out: the model's provider could not load it or does not take it.]"

_REFUSED = re.compile(r"image|download", re.IGNORECASE)
_FEWER: Mapping[Images, Images] = {"all": "embedded", "embedded": "none"}


def fewer_images(images: Images, said: str, wire: Mapping[str, Any]) -> Images | None:
    """Which images to send after a refusal of ``wire`` in the words ``said``; None when it is about something else."""
    return _FEWER.get(images) if _REFUSED.search(said) and _has_images(wire.get("messages")) else None


def with_images(request: ModelRequest, images: Images) -> ModelRequest:
    """``request`` with a text in the place of every image that is not to be sent."""
    if images == "all":
        return request
    return replace(request, messages=tuple(_message(message, images) for message in request.messages))


def _message(message: ChatMessage, images: Images) -> ChatMessage:
    return replace(message, parts=tuple(_shown(part, images) for part in message.parts))


def _shown(part: Part, images: Images) -> Part:
    if isinstance(part, ResultPart):
        return replace(part, parts=tuple(_said(inner, images) for inner in part.parts))
    return _said(part, images) if isinstance(part, ImagePart) else part


def _said(part: TextPart | ImagePart, images: Images) -> TextPart | ImagePart:
    loaded = isinstance(part, ImagePart) and part.url.startswith("http")
    return TextPart(LEFT_OUT) if loaded or (images == "none" and isinstance(part, ImagePart)) else part


def _has_images(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("type") in ("image", "image_url") or _has_images(value.get("content"))
    return isinstance(value, list) and any(_has_images(item) for item in value)
