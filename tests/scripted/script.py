"""The script: which answer the next request gets. Thread-safe: tests write it, the server takes from it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from tests.scripted.answers import Answer, from_json
from tests.scripted.conversation import Conversation
from tests.scripted.model import reply

Rule = Callable[[Conversation], Answer | None]


@dataclass(slots=True)
class Entry:
    """Answers in waiting for requests that hold ``marker`` (any text of the request, or its API key) and ``model``."""

    answers: deque[Answer]
    marker: str = ""
    model: str = ""
    last: bool = False

    def fits(self, conversation: Conversation) -> bool:
        where = conversation.user if self.last else conversation.haystack
        return bool(self.answers) and self.marker in where and self.model in ("", conversation.model)


@dataclass(slots=True)
class Route:
    """Answers in waiting for requests to a route: "POST /v1/files", "GET /v1/messages/batches/*"."""

    pattern: str
    answers: deque[Answer]


@dataclass(slots=True)
class Script:
    """Entries are asked longest marker first, then in their order; then rules; then the default model."""

    entries: list[Entry] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, *answers: Answer, marker: str = "", model: str = "", last: bool = False) -> None:
        """Queue answers; ``last`` looks for the marker in the last user message only."""
        with self.lock:
            self.entries.append(Entry(deque(answers), marker, model, last))
            self.entries.sort(key=lambda entry: -len(entry.marker))

    def add_route(self, pattern: str, *answers: Answer) -> None:
        """Queue answers for a route, whatever the body: asked before anything else is looked at."""
        with self.lock:
            self.routes.append(Route(pattern, deque(answers)))

    def add_rule(self, rule: Rule) -> None:
        """A function that answers, or returns None to leave it to others. Runs on the server's thread."""
        with self.lock:
            self.rules.insert(0, rule)

    def take(self, conversation: Conversation) -> Answer:
        """The answer to an accepted request; a queued one is used up."""
        with self.lock:
            for entry in self.entries:
                if entry.fits(conversation):
                    return _next(entry.answers)
            rules = list(self.rules)
        answers = (rule(conversation) for rule in rules)
        return next((found for found in answers if found is not None), None) or reply(conversation)

    def take_route(self, method: str, path: str) -> Answer | None:
        """The queued answer for this route, or None."""
        wanted = f"{method} {path}"
        with self.lock:
            for route in self.routes:
                if route.answers and fnmatchcase(wanted, route.pattern):
                    return _next(route.answers)
        return None

    def pending(self) -> int:
        """How many queued answers nobody has asked for; those given for ever count as none."""
        with self.lock:
            queues = [entry.answers for entry in self.entries] + [route.answers for route in self.routes]
            return sum(1 for queue in queues for found in queue if found.times)

    def clear(self) -> None:
        with self.lock:
            self.entries.clear()
            self.routes.clear()
            self.rules.clear()

    def load(self, value: Mapping[str, Any]) -> None:
        """Add what a control request says: {"answers": […], "marker", "model", "last"} or {"route", "answers"}."""
        answers = [from_json(found) for found in value["answers"]]
        if "route" in value:
            self.add_route(value["route"], *answers)
            return
        self.add(
            *answers,
            marker=value.get("marker", ""),
            model=value.get("model", ""),
            last=bool(value.get("last", False)),
        )


def _next(answers: deque[Answer]) -> Answer:
    found = answers[0]
    if found.times > 1:
        answers[0] = replace(found, times=found.times - 1)
    elif found.times == 1:
        answers.popleft()
    return found
