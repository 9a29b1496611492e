"""What an event is.

========================================  =====================================================
event                                     meaning
========================================  =====================================================
["r", n, text]                            reasoning delta, part n of the answer
["a", n, text]                            text delta
["c", n, call_id, name, text]             tool-call delta; id and name in the first piece, else null
["m", message, streamed]                  a whole wire message; ``streamed``: deltas gave it already
["stop", reason]                          the run's stop reason
["error", {type, message, detail}]        why it failed
["ping", {…}]                             a ping with extra fields (takeover)
["usage", {…}]                            usage; the last event of every run
========================================  =====================================================
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Event = list[Any]


@dataclass(frozen=True, slots=True)
class StepHead:
    """What the deltas of one answer share: message uuid, wire step id, wire date."""

    message: str
    step: str
    at: str

    def encode(self) -> str:
        return json.dumps([self.message, self.step, self.at])

    @staticmethod
    def decode(text: str) -> StepHead | None:
        return StepHead(*json.loads(text)) if text else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events from number ``first``; ``head`` belongs to the deltas among them."""

    first: int
    events: Sequence[Event]
    head: StepHead | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, cursor: int) -> Batch:
        """The part of it beyond ``cursor``."""
        if cursor < self.first:
            return self
        return Batch(cursor + 1, self.events[cursor + 1 - self.first :], self.head)


def is_delta(event: Event) -> bool:
    return event[0] in ("r", "a", "c")


def is_terminal(event: Event) -> bool:
    return bool(event[0] == "usage")


def encode(events: Sequence[Event]) -> str:
    return json.dumps(events, ensure_ascii=False, separators=(",", ":"))
