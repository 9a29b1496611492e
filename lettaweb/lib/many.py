"""The statements of ``lettaweb.lib.statements`` for many rows at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from lettaweb.lib.statements import Values, insert, insert_statement, opened, update_statement

_inserts: dict[tuple[type[Model], str], tuple[str, str, Values]] = {}
_updates: dict[tuple[type[Model], str, tuple[str, ...]], tuple[str, Values]] = {}
AT_ONCE = 100  # rows of one INSERT


def insert_many(rows: Sequence[Model]) -> None:
    """As ``bulk_create(rows)`` for rows of one model with an automatic key: they get their keys, in their order."""
    if len(rows) == 1:
        insert(rows[0])
        return
    for first in range(0, len(rows), AT_ONCE):
        _insert(rows[first : first + AT_ONCE])


def _insert(rows: Sequence[Model]) -> None:
    model, db = type(rows[0]), opened()
    key = (model, db.vendor)
    if key not in _inserts:
        statement, values = insert_statement(model)
        begin, _, end = statement.partition(" VALUES ")
        group, _, returned = end.rpartition(" RETURNING ")
        _inserts[key] = (f"{begin} VALUES %s RETURNING {returned}", group, values)
    statement, group, values = _inserts[key]
    with db.cursor() as cursor:
        stored = chain.from_iterable(values(rows, add=True))
        cursor.execute(statement % ", ".join([group] * len(rows)), list(stored))
        keys = sorted(found[0] for found in cursor.fetchall())
    for row, pk in zip(rows, keys, strict=True):
        row.pk = pk
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update_many(rows: Sequence[Model], *names: str) -> None:
    """As ``row.save(update_fields=names)`` for each of ``rows``, all of one model."""
    if not rows:
        return
    db = opened()
    key = (type(rows[0]), db.vendor, names)
    if key not in _updates:
        _updates[key] = update_statement(type(rows[0]), names)
    statement, values = _updates[key]
    with db.cursor() as cursor:
        cursor.executemany(statement, values(rows, add=False))


@dataclass(slots=True)
class Later:
    """Writes that nothing reads before the end of the transaction: put off, those of many go out together."""

    new: list[Model] = field(default_factory=list)
    changed: list[tuple[Model, tuple[str, ...]]] = field(default_factory=list)

    def insert(self, row: Model) -> None:
        self.new.append(row)

    def update(self, row: Model, *names: str) -> None:
        self.changed.append((row, names))


def write(laters: Iterable[Later]) -> None:
    """Write what was put off: new rows, then changes, each kind in the order in which it came first."""
    new, changed = defaultdict(list), defaultdict(list)
    for later in laters:
        for row in later.new:
            new[type(row)].append(row)
        for row, names in later.changed:
            changed[type(row), names].append(row)
        later.new, later.changed = [], []
    for rows in new.values():
        insert_many(rows)
    for (_, names), rows in changed.items():
        update_many(rows, *names)
