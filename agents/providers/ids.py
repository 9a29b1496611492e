"""Ids of calls and names of tools as every vendor takes them: letters, digits, "_" and "-", at most 64."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from agents.providers.base import CallPart, ChatMessage

SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class WireIds:
    """The ids of one request's calls. A safe id stays; others, and repeated ones, get one made from their text.

    The same history gives the same ids in every request, so that prompt caches hold.
    """

    def __init__(self, messages: Iterable[ChatMessage], *, longest: int = 64) -> None:
        calls = [part for message in messages for part in message.parts if isinstance(part, CallPart)]
        self._longest = longest
        self._reserved = {part.id for part in calls if self._safe(part.id)}
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}

    def of_call(self, call_id: str) -> str:
        """The wire id of the next call in the order of the conversation."""
        wire = call_id if self._safe(call_id) and call_id not in self._used else self._made(call_id)
        self._used.add(wire)
        self._latest[call_id] = wire
        return wire

    def of_result(self, call_id: str) -> str:
        """The wire id of the latest call with this id."""
        return self._latest.get(call_id) or self.of_call(call_id)

    def _safe(self, call_id: str) -> bool:
        return len(call_id) <= self._longest and SAFE.fullmatch(call_id) is not None

    def _made(self, call_id: str) -> str:
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        for turn in range(len(self._used) + len(self._reserved) + 1):
            wire = f"call_{digest[:24]}_{turn}"
            if wire not in self._used and wire not in self._reserved:
                return wire
        raise AssertionError("more names than ids")


def wire_name(name: str) -> str:
    """The name of a tool as vendors take it: itself, or a safe one that no other tool shares."""
    if SAFE.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{UNSAFE.sub('_', name)[:50]}_{digest[:12]}"


def own_names(names: Iterable[str]) -> Mapping[str, str]:
    """Wire name to own name, for the names that differ."""
    return {wire_name(name): name for name in names if not SAFE.fullmatch(name)}
