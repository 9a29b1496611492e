"""The rows of the log. Segments of a run tile 1..last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Max
from django.utils import timezone

from agents.events.kinds import Batch, Event, StepHead, bearable, decode, encode
from agents.events.wake import announce
from agents.models import EventSegment


@dataclass(frozen=True, slots=True)
class Fence:
    """Whose log it is: a write counts only while the run's epoch is still this one."""

    run_id: int
    epoch: int


GAP = 1_000_000
FEW, SEGMENTS = 4, 50  # segments of a page: those that are read first, and all

AT_ONCE = 500  # batches of one statement

_COLUMNS = "(run_id, first_seq, last_seq, epoch, head, data, created_at)"
_PLACES = "(%s, %s, %s, %s, %s, %s, %s)"
_STORE = f"INSERT INTO agents_eventsegment {_COLUMNS} VALUES {_PLACES}"  # noqa: S608 no values
_OURS = "SELECT id, epoch FROM agents_run WHERE id IN ({places}) AND status = 'running' ORDER BY id {lock}"


def insert_deltas(batches: Sequence[tuple[Fence, Batch]]) -> list[bool]:
    """Write ``batches``, in one transaction; False for each whose run is no longer its writer's."""
    parts = (batches[first : first + AT_ONCE] for first in range(0, len(batches), AT_ONCE))
    return [written for part in parts for written in _insert(part)]


def _insert(batches: Sequence[tuple[Fence, Batch]]) -> list[bool]:
    with connection.cursor() as cursor:
        ours = _ours(cursor, [fence for fence, _ in batches])
        rows = [(fence, batch) for fence, batch in batches if fence in ours]
        if rows:
            statement = f"{_STORE}{f', {_PLACES}' * (len(rows) - 1)} ON CONFLICT DO NOTHING"
            now = _now()
            cursor.execute(statement, [value for fence, batch in rows for value in _values(fence, batch, now)])
        known = not rows or cursor.rowcount == len(rows)
    announce("events", *(fence.run_id for fence, _ in rows))
    return [fence in ours and (known or _is_stored(fence, batch)) for fence, batch in batches]


def _ours(cursor: Any, fences: Sequence[Fence]) -> set[Fence]:
    """Those of ``fences`` that hold."""
    # On PostgreSQL the row locks make this wait for a change of epoch that is under way, so that either the change
    # sees these numbers or this sees the new epoch.
    lock = "FOR SHARE" if connection.vendor == "postgresql" else ""
    places = ", ".join(["%s"] * len(fences))
    cursor.execute(_OURS.format(places=places, lock=lock), [fence.run_id for fence in fences])
    return {Fence(*row) for row in cursor.fetchall()}.intersection(fences)


def _now() -> Any:
    """The time as the database takes it."""
    return connection.ops.adapt_datetimefield_value(timezone.now())


def _values(fence: Fence, batch: Batch, now: Any, *, first: int | None = None) -> tuple[Any, ...]:
    """A row of the log; ``first`` where it has more numbers than events."""
    head = batch.head.encode() if batch.head else ""
    began = batch.first if first is None else first
    return fence.run_id, began, batch.last, fence.epoch, head, batch.data or encode(batch.events), now


def _is_stored(fence: Fence, batch: Batch) -> bool:
    """Whether this very batch is in the log: its commit counted, and the database went away before it said so."""
    rows = EventSegment.objects.filter(run_id=fence.run_id, first_seq=batch.first, last_seq=batch.last)
    return rows.filter(
        epoch=fence.epoch, run__epoch=fence.epoch, run__status="running", data=batch.data or encode(batch.events)
    ).exists()


def last_seq(run_id: int) -> int:
    """The number of the last event of a run, 0 when there is none."""
    found: int | None = EventSegment.objects.filter(run_id=run_id).aggregate(last=Max("last_seq"))["last"]
    return found or 0


def append_facts(fence: Fence, events: Sequence[Event], *, after: int | None = None) -> Batch:
    """Write events that state facts; call it inside the transaction that locked the run.

    ``after`` is the last number where the caller knows it, else it is looked up.
    """
    first = (last_seq(fence.run_id) if after is None else after) + 1
    batch = Batch(first, list(events))
    append_many([(fence, batch)])
    return batch


def append_many(gained: Sequence[tuple[Fence, Batch]]) -> None:
    """Write what the logs of several runs gained; call it inside the transaction that locked them."""
    if not gained:
        return
    with connection.cursor() as cursor:
        now = _now()
        cursor.executemany(_STORE, [_values(fence, batch, now) for fence, batch in gained])
    announce("events", *(fence.run_id for fence, _ in gained))


def append_gap(fence: Fence, event: Event) -> Batch:
    """Write one event that takes up GAP numbers, the last of which is its own.

    Numbers that readers may have seen before the log lost them are never used again.
    """
    last = last_seq(fence.run_id) + GAP
    batch = Batch(last, [event])
    with connection.cursor() as cursor:
        cursor.execute(_STORE, _values(fence, batch, _now(), first=last - GAP + 1))
    announce("events", fence.run_id)
    return batch


def merged(fence: Fence, written: Batch | None, rest: Batch) -> list[Batch]:
    """The committed deltas of a step (``written``) and ``rest`` as one segment, or few if it is much.

    The deltas are out of the log until the caller has stored these.
    """
    if written is None:
        return [rest]
    EventSegment.objects.filter(run_id=fence.run_id, first_seq__range=(written.first, written.last)).delete()
    return list(_parts(Batch(written.first, [*written.events, *rest.events], written.head)))


def _parts(batch: Batch) -> Iterator[Batch]:
    more = True
    while more:
        (part,), more = bearable([batch])
        yield part
        batch = batch.after(part.last)


def page(run_id: int, after: int) -> list[Batch]:
    """The next batches beyond ``after``, oldest first, as much as is bearable; empty when there are none (yet)."""
    return look(run_id, after)[0]


def look(run_id: int, after: int) -> tuple[list[Batch], bool]:
    """A :func:`page`, and whether there may be more beyond it."""
    rows = _rows(run_id, after)
    found, cut = bearable(_batch(row).after(after) for row in rows)
    return found, cut or len(found) == SEGMENTS


def whole(run_id: int, after: int = 0) -> list[Batch]:
    """Everything beyond ``after``."""
    found: list[Batch] = []
    while some := page(run_id, after):
        found += some
        after = some[-1].last
    return found


def _rows(run_id: int, after: int) -> Iterator[EventSegment]:
    """The next segments, at most ``SEGMENTS``: few at first, for they may be large."""
    rows = EventSegment.objects.filter(run_id=run_id).order_by("first_seq")
    few = list(rows.filter(last_seq__gt=after)[:FEW])
    yield from few
    if len(few) == FEW:
        yield from rows.filter(last_seq__gt=few[-1].last_seq)[: SEGMENTS - FEW]


def _batch(row: EventSegment) -> Batch:
    """A row's events; the row of a gap has more numbers than events, which are its last ones."""
    events = decode(row.data)
    return Batch(row.last_seq - len(events) + 1, events, StepHead.decode(row.head))


def drop(run_ids: Sequence[int]) -> int:
    """Remove whole logs (retention); the caller marks the runs."""
    return EventSegment.objects.filter(run_id__in=run_ids).delete()[0]
