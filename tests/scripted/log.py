"""What arrived: every request with its verdict and how its answer went. Waiting for requests happens here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.scripted.http import Request

Json = Any
GENERATIONS = ("/v1/messages", "/v1/chat/completions")


@dataclass(slots=True, eq=False)
class Received:
    """One request. ``refusal`` is the reason of a strict refusal, "" for an accepted one.

    ``outcome``: open, finished, cut (by the script), gone (the client hung up before the end).
    ``items``: the refused requests of a batch, each with its reason.
    ``events`` counts the stream events written. ``at`` is seconds on the monotonic clock.
    """

    number: int
    at: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Json = None
    size: int = 0
    status: int = 0
    refusal: str = ""
    items: list[str] = field(default_factory=list)
    outcome: str = "open"
    events: int = 0

    @property
    def is_generation(self) -> bool:
        return self.method == "POST" and self.path in GENERATIONS


@dataclass(slots=True)
class Log:
    """The requests since the last reset. ``bodies`` False keeps none of the bodies (for load tests)."""

    requests: list[Received] = field(default_factory=list)
    bodies: bool = True
    changed: threading.Condition = field(default_factory=threading.Condition)
    count: int = 0

    def add(self, request: Request, body: Json) -> Received:
        """Note a request that has just arrived with its parsed body."""
        with self.changed:
            self.count += 1
            at = time.monotonic()
            entry = Received(self.count, at, request.method, request.path, request.query, request.headers, body)
            entry.size = request.size
            self.requests.append(entry)
            self.changed.notify_all()
            return entry

    def settle(self, entry: Received) -> None:
        """Note that the answer is over: whatever was not finished or cut is gone."""
        with self.changed:
            entry.outcome = "gone" if entry.outcome == "open" else entry.outcome
            if not self.bodies:
                self.requests.remove(entry)
            self.changed.notify_all()

    def touch(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, condition: Callable[[list[Received]], bool], timeout: float) -> list[Received]:
        """The requests once the condition holds. Raises TimeoutError after ``timeout`` seconds."""
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self.requests), timeout):
                raise TimeoutError(f"condition not met by {[(r.method, r.path, r.outcome) for r in self.requests]}")
            return list(self.requests)

    def clear(self) -> None:
        with self.changed:
            self.requests = []
            self.changed.notify_all()


def as_json(entry: Received) -> dict[str, Json]:
    return asdict(entry)
