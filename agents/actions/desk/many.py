"""One verdict about many calls: explicit ids, versions and digests, a result for each, short transactions.

A chunk of conversations is stored with a handful of statements, the continuing runs of its complete sets
among them. When anything in a chunk is not as it was read, its calls are decided one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone

from agents.actions.already import already, changed
from agents.actions.decide import Sender
from agents.actions.desk.edits import checked
from agents.actions.desk.find import light_rows, unknown
from agents.actions.desk.one import decide, said_before
from agents.actions.desk.together import Raced, store
from agents.actions.desk.words import addressed
from agents.actions.requests import Verdict
from agents.actions.verdicts import check_time
from agents.models import ToolCall
from lettaweb.lib.problems import Problem

READ_AT_ONCE = 400
FIRST_CHUNK, SMALLEST, LARGEST = 8, 4, 100
TARGET = 0.012  # seconds of our own work that a write transaction shall take

Status = Literal["done", "already", "changed", "missing", "failed"]
WORDS = {"approve": "approved", "deny": "denied", "answer": "answered"}


class Item(NamedTuple):
    """A call as it was shown."""

    uuid: UUID
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class RowResult:
    """What became of one item. ``message`` says why not in words; ``problem`` is the refusal itself."""

    uuid: UUID
    status: Status
    message: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """A call that may be decided, with its verdict."""

    call: ToolCall
    verdict: Verdict
    item: Item


def decide_many(items: Iterable[Item], verdict: Verdict, *, user: Any, via: str = "desk") -> list[RowResult]:
    """Say the same about every call of ``items``; a result for each, in their order.

    One item's trouble is its own: the others are decided. A call that is named twice is decided once, as
    its first item says. Raises a :class:`Problem` 422 for a verdict with edited arguments.
    """
    if verdict.edited is not None:
        raise Problem(422, "Changed arguments belong to one call; decide it by itself.")
    asked = list(items)
    first = {item.uuid: item for item in reversed(asked)}
    sender = Sender(user, via=via)
    found: dict[UUID, RowResult] = {}
    wishes: list[_Wish] = []
    for call in _read(list(first)):
        item = first[call.uuid]
        try:
            wish = _wish(call, item, verdict, user)
        except Problem as problem:
            found[call.uuid] = _refused(item.uuid, problem)
            continue
        found[call.uuid] = RowResult(call.uuid, "done")
        if wish is not None:
            wishes.append(wish)
    found |= {result.uuid: result for result in _decided(wishes, sender)}
    return [found.get(item.uuid) or _refused(item.uuid, unknown(item.uuid)) for item in asked]


def summary(results: Sequence[RowResult], kind: str) -> str:
    """ "34 approved, 2 already decided, 1 failed"; ``kind`` is the verdict's."""
    counts = [(WORDS.get(kind, "decided"), 0), ("already decided", 0), ("changed meanwhile", 0), ("failed", 0)]
    places = {"done": 0, "already": 1, "changed": 2, "missing": 3, "failed": 3}
    totals = [0] * len(counts)
    for result in results:
        totals[places[result.status]] += 1
    said = [f"{total} {word}" for total, (word, _) in zip(totals, counts, strict=True) if total]
    return ", ".join(said) or "nothing to decide"


def _read(uuids: Sequence[UUID]) -> Iterator[ToolCall]:
    for start in range(0, len(uuids), READ_AT_ONCE):
        yield from light_rows(uuids[start : start + READ_AT_ONCE])


def _wish(call: ToolCall, item: Item, verdict: Verdict, user: Any) -> _Wish | None:
    """What is to be stored; None when this person said the same before."""
    if not call.waiting:
        if said_before(call, verdict, user):
            return None
        raise already(call)
    if (call.version, call.digest) != (item.version, item.digest):
        raise changed(call)
    check_time(call, verdict, timezone.now())
    return _Wish(call, addressed(checked(verdict, call), call), item)


def _refused(uuid: UUID, problem: Problem) -> RowResult:
    detail = problem.detail
    message = detail if isinstance(detail, str) else str(detail["message"])
    statuses: dict[str, Status] = {"ALREADY_DECIDED": "already", "EXPIRED": "already", "CHANGED": "changed"}
    code = "" if isinstance(detail, str) else str(detail["code"])
    status = "missing" if problem.status == 404 else statuses.get(code, "failed")
    return RowResult(uuid, status, message, problem)


def _decided(wishes: Sequence[_Wish], sender: Sender) -> Iterator[RowResult]:
    size, start = FIRST_CHUNK, 0
    while start < len(wishes):
        chunk = wishes[start : start + size]
        start += size
        try:
            took = store([(wish.call, wish.verdict) for wish in chunk], sender).seconds
        except (Raced, IntegrityError):
            yield from _one_by_one(chunk, sender)
            took = 0.0
        else:
            yield from (RowResult(wish.item.uuid, "done") for wish in chunk)
        size = max(SMALLEST, min(LARGEST, int(size * min(2.0, TARGET / max(took, 1e-4)))))


def _one_by_one(wishes: Sequence[_Wish], sender: Sender) -> Iterator[RowResult]:
    for wish in wishes:
        item = wish.item
        try:
            decide(item.uuid, wish.verdict, version=item.version, digest=item.digest, user=sender.user, via=sender.via)
        except Problem as problem:
            yield _refused(item.uuid, problem)
        else:
            yield RowResult(item.uuid, "done")
