"""Ids as the wire writes them: ``prefix-uuid4`` in lower case."""

from __future__ import annotations

import re
import uuid

from lettaweb.lib.problems import Problem

_TAIL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def wire_id(prefix: str, value: uuid.UUID) -> str:
    return f"{prefix}-{value}"


def parse(prefix: str, text: str) -> uuid.UUID:
    """The uuid in ``text``; a :class:`Problem` 422 when it is not ``prefix-uuid4``."""
    found = find(prefix, text)
    if found is None:
        raise Problem(422, f"'{text[:80]}' is not a valid {prefix} id: expected {prefix}-<uuid4>")
    return found


def find(prefix: str, text: object) -> uuid.UUID | None:
    """The uuid in ``text``, None when it is not ``prefix-uuid4``."""
    if not isinstance(text, str) or not text.startswith(prefix + "-"):
        return None
    tail = text[len(prefix) + 1 :]
    return uuid.UUID(tail) if _TAIL.fullmatch(tail) else None
