"""Blacks out secrets in whatever a tool gave back."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

MARK = "[redacted]"
SHORTEST = 4  # shorter "secrets" (1, on, eu) would black out half of every text


def _spellings(secret: str) -> set[str]:
    """The secret, and how it looks inside JSON, a repr and a URL."""
    quoted = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    return {secret, secret.strip(), *quoted, urllib.parse.quote(secret), urllib.parse.quote_plus(secret)}


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return the function that blacks out ``secrets`` in a text."""
    words = {word for secret in secrets for word in _spellings(secret) if len(word.strip()) >= SHORTEST}
    if not words:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))
    return lambda text: pattern.sub(MARK, text)


def redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    """Return a JSON value with the secrets blacked out in its texts, keys and numbers."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(key): redact_value(item, redact) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_value(item, redact) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = str(value)
        return value if redact(text) == text else MARK
    return value
