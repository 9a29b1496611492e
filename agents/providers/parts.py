"""What is said in a conversation with a model: messages and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning text; ``signature`` is the vendor's, byte for byte, "" when it has none."""

    text: str
    signature: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True)
class RedactedReasoningPart:
    """Reasoning that the vendor encrypted; sent back unchanged to the same vendor only."""

    data: str
    provider: str = ""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: base64 ``data`` with its ``media_type``, or a ``url``."""

    media_type: str = ""
    data: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class CallPart:
    """The model wants a tool. ``id`` is ours (any form); ``arguments`` is JSON text as the model wrote it
    in a response, and always the JSON text of an object in a request."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The result of the call ``id``. ``parts`` hold text and images; may be empty."""

    id: str
    parts: tuple[TextPart | ImagePart, ...]
    is_error: bool = False


Part = TextPart | ReasoningPart | RedactedReasoningPart | ImagePart | CallPart | ResultPart


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation. Roles alternate, the first is ``user``.

    user: TextPart and ImagePart, or first all ResultParts of the assistant message before it and then
    TextPart and ImagePart. assistant: reasoning parts, TextPart, CallPart.
    """

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]
