"""Calls and their results brought together, each call under an id of its own. Knows no vendor's limits on ids."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agents.context.clean import arguments_object, spoken, text_of, tool_name
from agents.context.history import HistoryMessage, StoredPart
from agents.providers.base import CallPart, ImagePart, ResultPart, TextPart

INTERRUPTED = "Error: interrupted, outcome unknown. The call may or may not have taken effect."
NO_ERROR_TEXT = "Error: the tool failed and gave no text."


@dataclass(slots=True)
class Pair:
    """A call as it goes out and the stored result that answers it, None while there is none.

    ``answered_at`` is the place of the message that holds the result, -1 while there is none.
    """

    call: CallPart
    result: StoredPart | None = None
    answered_at: int = -1


def calls_of(message: HistoryMessage) -> Iterator[StoredPart]:
    """The stored call parts of a message that may hold some."""
    if message.role in ("assistant", "approval"):
        yield from (part for part in message.parts if part.get("type") == "call")


def results_of(message: HistoryMessage) -> Iterator[StoredPart]:
    """The stored result parts of a message that may hold some."""
    if message.role in ("tool", "approval"):
        yield from (part for part in message.parts if part.get("type") == "result")


def paired(messages: Sequence[HistoryMessage]) -> list[list[Pair]]:
    """For each message its calls in emission order, each with its result.

    A result answers the newest message before it that has an open call of its id; within one message
    the calls of one id are answered in order. What answers nothing is dropped.
    """
    fresh = _Ids()
    waiting: dict[str, list[deque[Pair]]] = defaultdict(list)
    made: list[list[Pair]] = []
    for place, message in enumerate(messages):
        groups: dict[str, deque[Pair]] = {}
        made.append([_open(part, fresh, groups) for part in calls_of(message)])
        for stored, group in groups.items():
            waiting[stored].append(group)
        for part in results_of(message):
            _answer(waiting.get(id_of(part)), part, place)
    return made


def _open(part: StoredPart, fresh: _Ids, groups: dict[str, deque[Pair]]) -> Pair:
    stored = id_of(part)
    call = CallPart(fresh.take(stored), tool_name(part.get("name")), arguments_object(part.get("arguments")))
    pair = Pair(call)
    groups.setdefault(stored, deque()).append(pair)
    return pair


def _answer(groups: list[deque[Pair]] | None, part: StoredPart, place: int) -> None:
    if not groups:
        return
    pair = groups[-1].popleft()
    pair.result, pair.answered_at = part, place
    if not groups[-1]:
        groups.pop()


def id_of(part: StoredPart) -> str:
    """The id under which a stored call or result is known, "" when it has none."""
    stored = part.get("id")
    return stored if isinstance(stored, str) else ""


class _Ids:
    """Ids that repeat or are blank get a number; the same history always gets the same ids."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = defaultdict(lambda: 1)

    def take(self, stored: str) -> str:
        base = text_of(stored) or "call"
        made = base
        while made in self._taken:
            self._counts[base] += 1
            made = f"{base}_{self._counts[base]}"
        self._taken.add(made)
        return made


def answers(pairs: Iterable[Pair]) -> Iterator[ResultPart | ImagePart]:
    """The results of a message's calls in emission order, then the images of failed ones.

    A failed result may hold nothing but text, so its images stand behind all results.
    """
    aside: list[ImagePart] = []
    for pair in pairs:
        if pair.result is None:
            yield ResultPart(pair.call.id, (TextPart(INTERRUPTED),), is_error=True)
            continue
        parts = tuple(_content(pair.result))
        if pair.result.get("status") != "error":
            yield ResultPart(pair.call.id, parts)
            continue
        texts = tuple(part for part in parts if isinstance(part, TextPart))
        aside.extend(part for part in parts if isinstance(part, ImagePart))
        yield ResultPart(pair.call.id, texts or (TextPart(NO_ERROR_TEXT),), is_error=True)
    yield from aside


def _content(result: StoredPart) -> Iterator[TextPart | ImagePart]:
    content = result.get("content")
    if isinstance(content, list) and content:
        yield from spoken(part for part in content if isinstance(part, dict))
    elif text := text_of(content) or text_of(result.get("text")):
        yield TextPart(text)
