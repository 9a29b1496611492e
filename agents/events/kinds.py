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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Event = Sequence[Any]  # deltas are tuples: the collector forgets those, and a process holds very many
DELTAS = ("r", "a", "c")
EACH = 200  # about the bytes that an event takes in memory beside its texts
BEARABLE = 256 * 1024  # of weight that one reader is given at once: one that stalls holds it for long


@dataclass(frozen=True, slots=True)
class StepHead:
    """What the deltas of one answer share: message uuid, wire step id, wire date."""

    message: str
    step: str
    at: str

    def encode(self) -> str:
        return _written(self)

    @staticmethod
    def decode(text: str) -> StepHead | None:
        return StepHead(*json.loads(text)) if text else None


@lru_cache(maxsize=1024)  # of as many answers as are open: each is written again and again
def _written(head: StepHead) -> str:
    return json.dumps([head.message, head.step, head.at])


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events from number ``first``; ``head`` belongs to the deltas among them.

    ``data``: the events as the log has them, where that is at hand.
    """

    first: int
    events: Sequence[Event]
    head: StepHead | None = None
    data: str = field(default="", repr=False, compare=False)

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, cursor: int) -> Batch:
        """The part of it beyond ``cursor``."""
        if cursor < self.first:
            return self
        return Batch(cursor + 1, self.events[cursor + 1 - self.first :], self.head)

    def upto(self, last: int) -> Batch:
        """The part of it up to ``last``, which is one of its numbers."""
        return self if last == self.last else Batch(self.first, self.events[: last + 1 - self.first], self.head)


def is_delta(event: Event) -> bool:
    return event[0] in DELTAS


def is_terminal(event: Event) -> bool:
    return bool(event[0] == "usage")


def weight(event: Event) -> int:
    """About the bytes that an event takes in memory."""
    said = event[1].values() if event[0] == "m" else event
    return EACH + sum(len(text) for text in said if isinstance(text, str))


def bearable(batches: Iterable[Batch]) -> tuple[list[Batch], bool]:
    """The first of ``batches``, as much as a reader is given at once, and whether something was left out.

    It is at least one event; a batch may be cut.
    """
    found: list[Batch] = []
    room = BEARABLE
    for batch in batches:
        if batch.data and len(batch.data) + EACH * len(batch.events) <= room:
            room -= len(batch.data) + EACH * len(batch.events)
        else:
            for fitting, event in enumerate(batch.events):
                room -= weight(event)
                if room < 0 and (found or fitting):
                    return [*found, batch.upto(batch.first + fitting - 1)] if fitting else found, True
        found.append(batch)
    return found, False


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(events: Sequence[Event]) -> str:
    return _ENCODER.encode(events)


def decode(data: str) -> list[Event]:
    events: list[Event] = json.loads(data)
    return events


def decode_all(parts: Iterable[str]) -> list[Event]:
    """The events of consecutive batches."""
    return decode(f"[{','.join(data[1:-1] for data in parts)}]")
