"""What a new conversation begins with, and what the system says later in an agent's name. Plain values."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.memory.clock import local_time
from agents.memory.defaults import MEMGPT_TYPES

GREETING = "Ready when you are."
THOUGHT = "I have just been started. My memory is in place; I try out how I reach the user."


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A message to be stored: ``role`` and ``parts`` as ``agents.models.Message`` documents them."""

    role: str
    parts: tuple[Mapping[str, Any], ...]
    name: str | None = None


def boot_messages(
    agent_type: str,
    *,
    system: str,
    now: datetime,
    timezone: str | None = "UTC",
    initial: Sequence[Mapping[str, Any]] | None = None,
) -> list[MessageSpec]:
    """The first messages of a new agent's conversation.

    ``system`` is the compiled prompt. memgpt agents begin with a call of send_message, its result and a
    login event; the others with the prompt alone. ``initial`` (role user or assistant, content text)
    stands in the place of either.
    """
    first = MessageSpec("system", (_text(system),))
    if initial is not None:
        return [first, *(MessageSpec(str(said["role"]), (_text(str(said["content"])),)) for said in initial)]
    if agent_type not in MEMGPT_TYPES:
        return [first]
    call = f"call_{uuid.uuid4().hex[:24]}"
    return [first, _greeting(call), _greeted(call), MessageSpec("user", (_text(login_text(now, timezone)),))]


def _greeting(call: str) -> MessageSpec:
    arguments = json.dumps({"message": GREETING})
    thought = {"type": "reasoning", "text": THOUGHT, "signature": "", "provider": ""}
    made = {"type": "call", "id": call, "name": "send_message", "arguments": arguments, "gated": False}
    return MessageSpec("assistant", (thought, made))


def _greeted(call: str) -> MessageSpec:
    result: dict[str, Any] = {
        "type": "result",
        "id": call,
        "name": "send_message",
        "status": "success",
        "text": "Message sent.",
        "content": None,
        "stdout": [],
        "stderr": [],
    }
    return MessageSpec("tool", (result,), name="send_message")


def login_text(now: datetime, timezone: str | None) -> str:
    """The user message that tells a memgpt agent of its user's first visit."""
    return _event("login", now, timezone, last_login="Never (first login)")


def heartbeat_text(reason: str, *, now: datetime, timezone: str | None) -> str:
    """The user message that lets a memgpt agent act again; ``reason`` is a sentence for the model."""
    return _event("heartbeat", now, timezone, reason=reason)


def _event(kind: str, now: datetime, timezone: str | None, **fields: str) -> str:
    return json.dumps({"type": kind, **fields, "time": local_time(now, timezone)}, indent=2, ensure_ascii=False)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
