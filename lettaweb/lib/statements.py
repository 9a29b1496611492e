"""Statements made once instead of at every call, for the few that every message needs.

Half of what the ORM costs for one row is spent on writing the same SQL again. Rows go through the same field
conversions, so what is stored and read is what ``save()`` and the query set would store and read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Field, Model, QuerySet

M = TypeVar("M", bound=Model)

MARK = 7_340_981_725  # stands for the key while a query is compiled; no row will ever have it
_inserts: dict[tuple[type[Model], str], tuple[str, list[Any]]] = {}
_updates: dict[tuple[type[Model], str, tuple[str, ...]], tuple[str, list[Any]]] = {}


def insert(row: Model) -> None:
    """As ``row.save(force_insert=True)`` for a model with an automatic key, without signals."""
    model = type(row)
    key = (model, connection.vendor)
    if key not in _inserts:
        _inserts[key] = _insert_statement(model)
    statement, fields = _inserts[key]
    with connection.cursor() as cursor:
        cursor.execute(statement, [_stored(field, row, add=True) for field in fields])
        row.pk = cursor.fetchone()[0]
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update(row: Model, *names: str) -> bool:
    """As ``row.save(update_fields=names)``, without signals; False when the row is gone."""
    model = type(row)
    key = (model, connection.vendor, names)
    if key not in _updates:
        _updates[key] = _update_statement(model, names)
    statement, fields = _updates[key]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(_stored(field, row, add=False) for field in fields), row.pk])
        return bool(cursor.rowcount)


def _stored(field: Field[Any, Any], row: Model, *, add: bool) -> Any:
    return field.get_db_prep_save(field.pre_save(row, add), connection=connection)


def _insert_statement(model: type[Model]) -> tuple[str, list[Any]]:
    quote: Any = connection.ops.quote_name
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(quote(field.column) for field in fields)
    values = ", ".join(["%s"] * len(fields))
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    return f"INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING {key}", fields  # noqa: S608 names of models


def _update_statement(model: type[Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    quote: Any = connection.ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    changes = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    return f"UPDATE {table} SET {changes} WHERE {key} = %s", fields  # noqa: S608 names of models


class Prepared(Generic[M]):
    """A query by one number, compiled at its first call.

    ``build`` makes the query set for a key; the key may stand in it anywhere as a plain parameter. Calling
    gives the list of rows. Related rows, prefetches, annotations and values are not known.
    """

    def __init__(self, build: Callable[[int], QuerySet[M]]) -> None:
        self._build = build
        self._compiled: dict[str, tuple[str, list[Any], Any, Any]] = {}

    def __call__(self, key: int) -> list[M]:
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compiled[connection.vendor] = self._compile()
        statement, parameters, compiler, converters = compiled
        with connection.cursor() as cursor:
            cursor.execute(statement, [key if value == MARK else value for value in parameters])
            rows: Any = cursor.fetchall()
        if converters:
            rows = compiler.apply_converters(rows, converters)
        model: type[M] = compiler.query.model
        names = [field.attname for field in model._meta.concrete_fields]
        return [model.from_db(DEFAULT_DB_ALIAS, names, row) for row in rows]

    def _compile(self) -> tuple[str, list[Any], Any, Any]:
        compiler: Any = self._build(MARK).query.get_compiler(connection=connection)
        statement, parameters = compiler.as_sql()
        converters = compiler.get_converters([column[0] for column in compiler.select])
        return statement, list(parameters), compiler, converters
