"""How many tokens something is, guessed locally. Only this module guesses; exact counts come from a provider.

A token is about 3.5 characters of ASCII text. Other characters cost by their UTF-8 bytes: about 0.7 for an
accented or Cyrillic letter, 1.1 for a Chinese, Japanese or Korean one, 1.6 for an emoji. That is rather too
much than too little: compaction that comes early costs a summary, one that comes late costs a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.context.history import StoredPart
from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    ModelRequest,
    Part,
    ReasoningPart,
    RedactedReasoningPart,
    ResultPart,
    TextPart,
    ToolSpec,
)

PER_MESSAGE = 4  # the frame of a message: role, separators
PER_CALL = 12  # ids and frame of a call or a result
PER_IMAGE = 1600  # what a vendor bills for an image of about 1100 x 1100 pixels, its largest without scaling


def estimate_tokens(value: str | Sequence[StoredPart] | ModelRequest) -> int:
    """The estimate for a text, for the stored parts of one message, or for a whole request."""
    if isinstance(value, str):
        return text_tokens(value)
    if isinstance(value, ModelRequest):
        return text_tokens(value.system) + tools_tokens(value.tools) + messages_tokens(value.messages)
    return PER_MESSAGE + sum(map(_stored_tokens, value))


def text_tokens(text: str) -> int:
    extra = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return (4 * len(text) + 6 * extra + 13) // 14


def messages_tokens(messages: Iterable[ChatMessage]) -> int:
    return sum(PER_MESSAGE + sum(map(_part_tokens, message.parts)) for message in messages)


def tools_tokens(tools: Iterable[ToolSpec]) -> int:
    """The estimate for tools on offer: names, descriptions and schemas."""
    return sum(
        PER_CALL
        + text_tokens(tool.name)
        + text_tokens(tool.description)
        + text_tokens(json.dumps(dict(tool.parameters)))
        for tool in tools
    )


def characters(tokens: int) -> int:
    """How many ASCII characters ``tokens`` are."""
    return max(tokens, 0) * 7 // 2


def _part_tokens(part: Part) -> int:
    match part:
        case TextPart(text):
            return text_tokens(text)
        case ReasoningPart(text, signature):
            # What vendors keep of reasoning is in the text or, where they show none, in the signature.
            return text_tokens(text or signature)
        case RedactedReasoningPart(data):
            return text_tokens(data)
        case ImagePart():
            return PER_IMAGE
        case CallPart(_, name, arguments):
            return PER_CALL + text_tokens(name) + text_tokens(arguments)
        case ResultPart(_, parts):
            return PER_CALL + sum(map(_part_tokens, parts))


def _stored_tokens(part: StoredPart) -> int:
    match part.get("type"):
        case "text":
            return _tokens(part.get("text"))
        case "reasoning" if part.get("signature"):
            return _tokens(part.get("text") or part.get("signature"))
        case "redacted":
            return _tokens(part.get("data"))
        case "image":
            return PER_IMAGE
        case "call":
            return PER_CALL + _tokens(part.get("name")) + _tokens(part.get("arguments"))
        case "result":
            return PER_CALL + _result_tokens(part)
    return 0


def _result_tokens(part: StoredPart) -> int:
    content = part.get("content")
    if isinstance(content, list) and content:
        return sum(_stored_tokens(item) for item in content if isinstance(item, Mapping))
    return _tokens(content or part.get("text"))


def _tokens(value: Any) -> int:
    return text_tokens(value) if isinstance(value, str) else 0
