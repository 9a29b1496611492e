"""From a provider's deltas to events: numbered parts, and no deltas of calls that must not be seen yet."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace

from agents.events import Event
from agents.loop import Ask
from agents.providers.base import CallDelta, CallPart, CallStart, Delta, ModelResponse, ReasoningDelta, TextDelta
from lettaweb.lib.text import clean_text

KIND = {ReasoningDelta: "r", TextDelta: "a"}


@dataclass(slots=True)
class Numbering:
    """Turns the deltas of one answer into events."""

    order: Ask
    part: int = -1
    kind: str = ""
    kinds: set[str] = field(default_factory=set)
    streamed_calls: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)

    def event(self, delta: Delta) -> Event | None:
        """The event of ``delta``; None when readers must not see it (yet)."""
        if isinstance(delta, CallStart):
            return self._start(delta)
        if isinstance(delta, CallDelta):
            return self._piece(delta)
        text = clean_text(delta.text)
        if not text:
            return None
        kind = KIND[type(delta)]
        self._turn_to(kind)
        return kind, self.part, text

    def _turn_to(self, kind: str) -> None:
        if kind != self.kind:
            self.part, self.kind = self.part + 1, kind
            self.kinds.add(kind)

    def _start(self, delta: CallStart) -> Event | None:
        offered = {tool.name for tool in self.order.request.tools}
        hidden = delta.name in self.order.silent or delta.name not in offered
        if hidden or (self.order.one_call and delta.index > 0):
            return None
        self._turn_to("c")
        call_id = self.fresh(delta.id)
        self.shown[delta.index] = call_id
        self.streamed_calls.add(call_id)
        return "c", self.part, call_id, delta.name, ""

    def _piece(self, delta: CallDelta) -> Event | None:
        call_id = self.shown.get(delta.index)
        text = clean_text(delta.text)
        return ("c", self.part, call_id, None, text) if call_id and text else None

    def fresh(self, call_id: str) -> str:
        """The id under which a call is known here: vendors may use one again in a later answer."""
        if call_id not in self.order.known_ids:
            return call_id
        return self.names.setdefault(call_id, f"call_{uuid.uuid4().hex[:24]}")

    def settled(self, response: ModelResponse) -> ModelResponse:
        """The answer with the ids that readers saw."""
        parts = [replace(p, id=self.fresh(p.id)) if isinstance(p, CallPart) else p for p in response.parts]
        return replace(response, parts=tuple(parts))
