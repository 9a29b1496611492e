"""The statements of ``lettaweb.lib.statements`` for many rows at once."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model

from lettaweb.lib.statements import Value, insert_statement, update_statement

_inserts: dict[tuple[type[Model], str], tuple[str, str, list[Value]]] = {}
_updates: dict[tuple[type[Model], str, tuple[str, ...]], tuple[str, list[Value]]] = {}
AT_ONCE = 100  # rows of one INSERT


def insert_many(rows: Sequence[Model]) -> None:
    """As ``bulk_create(rows)`` for rows of one model with an automatic key: they get their keys, in their order."""
    for first in range(0, len(rows), AT_ONCE):
        _insert(rows[first : first + AT_ONCE])


def _insert(rows: Sequence[Model]) -> None:
    model = type(rows[0])
    key = (model, connection.vendor)
    if key not in _inserts:
        statement, values = insert_statement(model)
        begin, _, end = statement.partition(" VALUES ")
        _inserts[key] = (begin, end.rpartition(" RETURNING ")[2], values)
    begin, returned, values = _inserts[key]
    group = f"({', '.join(['%s'] * len(values))})"
    statement = f"{begin} VALUES {', '.join([group] * len(rows))} RETURNING {returned}"
    with connection.cursor() as cursor:
        cursor.execute(statement, [value(row, True) for row in rows for value in values])
        keys = sorted(found[0] for found in cursor.fetchall())
    for row, pk in zip(rows, keys, strict=True):
        row.pk = pk
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update_many(rows: Sequence[Model], *names: str) -> None:
    """As ``row.save(update_fields=names)`` for each of ``rows``, all of one model."""
    if not rows:
        return
    key = (type(rows[0]), connection.vendor, names)
    if key not in _updates:
        _updates[key] = update_statement(type(rows[0]), names)
    statement, values = _updates[key]
    with connection.cursor() as cursor:
        cursor.executemany(statement, [[*(value(row, False) for value in values), row.pk] for row in rows])
