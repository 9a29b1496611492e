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
PLAIN = frozenset(
    {
        "AutoField", "BigAutoField", "BigIntegerField", "BooleanField", "CharField", "IntegerField",
        "PositiveBigIntegerField", "PositiveIntegerField", "PositiveSmallIntegerField", "TextField",
    }
)  # fmt: skip
Value = Callable[[Any, bool], Any]  # of a row that is made (True) or changed
_inserts: dict[tuple[type[Model], str], tuple[str, list[Value]]] = {}
_updates: dict[tuple[type[Model], str, tuple[str, ...]], tuple[str, list[Value]]] = {}


def insert(row: Model) -> None:
    """As ``row.save(force_insert=True)`` for a model with an automatic key, without signals."""
    model = type(row)
    key = (model, connection.vendor)
    if key not in _inserts:
        _inserts[key] = insert_statement(model)
    statement, values = _inserts[key]
    with connection.cursor() as cursor:
        cursor.execute(statement, [value(row, True) for value in values])
        row.pk = cursor.fetchone()[0]
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update(row: Model, *names: str) -> bool:
    """As ``row.save(update_fields=names)``, without signals; False when the row is gone."""
    model = type(row)
    key = (model, connection.vendor, names)
    if key not in _updates:
        _updates[key] = update_statement(model, names)
    statement, values = _updates[key]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(value(row, False) for value in values), row.pk])
        return bool(cursor.rowcount)


def _value(field: Field[Any, Any]) -> Value:
    """How a row's value of ``field`` is stored; numbers and texts are stored as they are."""
    name, target = field.attname, getattr(field, "target_field", field)
    if target.get_internal_type() in PLAIN and not hasattr(field, "auto_now"):
        return lambda row, _add: getattr(row, name)
    return lambda row, add: field.get_db_prep_save(field.pre_save(row, add), connection=connection)


def insert_statement(model: type[Model]) -> tuple[str, list[Value]]:
    quote: Any = connection.ops.quote_name
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(quote(field.column) for field in fields)
    values = ", ".join(["%s"] * len(fields))
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    statement = f"INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING {key}"  # noqa: S608 names of models
    return statement, [_value(field) for field in fields]


def update_statement(model: type[Model], names: tuple[str, ...]) -> tuple[str, list[Value]]:
    quote: Any = connection.ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    changes = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    statement = f"UPDATE {table} SET {changes} WHERE {key} = %s"  # noqa: S608 names of models
    return statement, [_value(field) for field in fields]


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
