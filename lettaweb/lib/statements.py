"""Statements made once instead of at every call, for the few that every message needs.

Half of what the ORM costs for one row is spent on writing the same SQL again. Rows go through the same field
conversions, so what is stored and read is what ``save()`` and the query set would store and read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model, QuerySet, UUIDField
from django.utils import timezone

AT_ONCE = 500  # keys of one statement: databases limit how many they take
K = TypeVar("K")
M = TypeVar("M", bound=Model)

# They stand for the key while a query is compiled; no row will ever have them.
MARK = 7_340_981_725
IN_ONE = "IN (%s)"
MARK_UUID = UUID("7c5f3a4e-0d0f-4f6e-9d3b-1f6d2a5b8c91")
_UUID: UUIDField[UUID, UUID] = UUIDField()
PLAIN = frozenset(
    {
        "AutoField", "BigAutoField", "BigIntegerField", "BooleanField", "CharField", "IntegerField",
        "PositiveBigIntegerField", "PositiveIntegerField", "PositiveSmallIntegerField", "TextField",
    }
)  # fmt: skip


class Values:
    """What of a row is stored for ``fields``, in their order; numbers and texts are stored as they are."""

    def __init__(self, fields: Sequence[Field[Any, Any]]) -> None:
        self._get = attrgetter(*(field.attname for field in fields))
        self._set = [field.attname for field in fields if getattr(field, "auto_now", False)]
        self._set_new = [field.attname for field in fields if getattr(field, "auto_now_add", False)]
        self._converted = [(place, _converter(field)) for place, field in enumerate(fields) if not _is_plain(field)]

    def __call__(self, rows: Sequence[Model], *, add: bool) -> list[list[Any]]:
        """The values of each row; rows that are stored together were made and changed at one moment."""
        now, names = timezone.now(), [*self._set, *self._set_new] if add else self._set
        return [self._of(row, names, now) for row in rows]

    def _of(self, row: Model, names: Sequence[str], now: datetime) -> list[Any]:
        for name in names:
            setattr(row, name, now)
        found = list(self._get(row))
        for place, convert in self._converted:
            if (value := found[place]) is not None:
                found[place] = convert(value)
        return found


def _is_plain(field: Field[Any, Any]) -> bool:
    return getattr(field, "target_field", field).get_internal_type() in PLAIN


def _converter(field: Any) -> Callable[[Any], Any]:
    """How values of ``field`` are stored, quicker where Django is long about what comes for every row."""
    kind = field.get_internal_type()
    stored = partial(field.get_db_prep_save, connection=connection)
    if kind == "UUIDField" and not connection.features.has_native_uuid_field:
        return lambda value: value.hex if isinstance(value, UUID) else stored(value)
    if kind in ("DateTimeField", "DecimalField"):
        return lru_cache(maxsize=64)(stored)  # the same few moments and prices come again and again
    if kind == "JSONField":
        return _json_converter(stored)
    return stored


def _json_converter(stored: Callable[[Any], Any]) -> Callable[[Any], Any]:
    empty: dict[type, Any] = {dict: stored({}), list: stored([])}
    return lambda value: stored(value) if value else empty.get(type(value)) or stored(value)


def opened() -> BaseDatabaseWrapper:
    """The connection itself: ``connection`` looks for it anew at every word that is asked of it."""
    return connections[DEFAULT_DB_ALIAS]


_inserts: dict[tuple[type[Model], str], tuple[str, Values]] = {}
_updates: dict[tuple[type[Model], str, tuple[str, ...]], tuple[str, Values]] = {}


def insert(row: Model) -> None:
    """As ``row.save(force_insert=True)`` for a model with an automatic key, without signals."""
    model, db = type(row), opened()
    key = (model, db.vendor)
    if key not in _inserts:
        _inserts[key] = insert_statement(model)
    statement, values = _inserts[key]
    with db.cursor() as cursor:
        cursor.execute(statement, *values([row], add=True))
        row.pk = cursor.fetchone()[0]
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update(row: Model, *names: str) -> bool:
    """As ``row.save(update_fields=names)``, without signals; False when the row is gone."""
    model, db = type(row), opened()
    key = (model, db.vendor, names)
    if key not in _updates:
        _updates[key] = update_statement(model, names)
    statement, values = _updates[key]
    with db.cursor() as cursor:
        cursor.execute(statement, *values([row], add=False))
        return bool(cursor.rowcount)


def insert_statement(model: type[Model]) -> tuple[str, Values]:
    quote: Any = connection.ops.quote_name
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(quote(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    statement = f"INSERT INTO {table} ({columns}) VALUES ({places}) RETURNING {key}"  # noqa: S608 names of models
    return statement, Values(fields)


def update_statement(model: type[Model], names: tuple[str, ...]) -> tuple[str, Values]:
    """The statement and its values: those of ``names``, and last the key."""
    quote: Any = connection.ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    changes = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    table, key = quote(model._meta.db_table), quote(model._meta.pk.column)
    statement = f"UPDATE {table} SET {changes} WHERE {key} = %s"  # noqa: S608 names of models
    return statement, Values([*fields, model._meta.pk])


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A statement with the parameters beside its key, and how its rows are converted."""

    statement: str
    parameters: Sequence[Any]
    mark: Any
    compiler: Any
    converters: Any

    def rows(self, key: Any) -> Any:
        """The rows of one key."""
        return self._read(self.statement, [key if value == self.mark else value for value in self.parameters])

    def rows_of(self, keys: Sequence[Any]) -> Any:
        """The rows of several keys, which take the place of the one in ``IN``."""
        at = self.parameters.index(self.mark)
        statement = self.statement.replace(IN_ONE, f"IN ({', '.join(['%s'] * len(keys))})")
        return self._read(statement, [*self.parameters[:at], *keys, *self.parameters[at + 1 :]])

    def objects(self, rows: Any) -> list[Any]:
        """Rows as objects of the query's model, which know the columns that were read."""
        model = self.compiler.query.model
        names = [column.target.attname for column, *_ in self.compiler.select]
        return [model.from_db(DEFAULT_DB_ALIAS, names, row) for row in rows]

    def _read(self, statement: str, parameters: Sequence[Any]) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            rows: Any = cursor.fetchall()
        return self.compiler.apply_converters(rows, self.converters) if self.converters else rows


class _Query(Generic[K]):
    """A query by one key, compiled at its first call.

    ``build`` makes the query set for a key; the key may stand in it anywhere as a plain parameter.
    """

    def __init__(self, build: Callable[[K], QuerySet[Any, Any]], mark: K) -> None:
        self._build, self._mark = build, mark
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, key: K) -> Any:
        return self.compiled().rows(_stored(key))

    def objects(self, key: K) -> list[Any]:
        compiled = self.compiled()
        return compiled.objects(compiled.rows(_stored(key)))

    def compiled(self) -> _Compiled:
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compiled[connection.vendor] = self._compile()
        return compiled

    def _compile(self) -> _Compiled:
        compiler: Any = self._build(self._mark).query.get_compiler(connection=connection)
        statement, parameters = compiler.as_sql()
        converters = compiler.get_converters([column[0] for column in compiler.select])
        return _Compiled(statement, tuple(parameters), _stored(self._mark), compiler, converters)


def _stored(key: Any) -> Any:
    """A key as the database takes it."""
    return _UUID.get_db_prep_value(key, connection) if isinstance(key, UUID) else key


class Prepared(Generic[M]):
    """Rows by one number: calling gives their list. Related rows, prefetches and annotations are not known."""

    def __init__(self, build: Callable[[int], QuerySet[M]]) -> None:
        self._query = _Query(build, MARK)

    def __call__(self, key: int) -> list[M]:
        return self._query.objects(key)


class PreparedByUuid(Generic[M]):
    """The same by a UUID."""

    def __init__(self, build: Callable[[UUID], QuerySet[M]]) -> None:
        self._query = _Query(build, MARK_UUID)

    def __call__(self, key: UUID) -> list[M]:
        return self._query.objects(key)


class PreparedValues:
    """The same for a query set of ``values_list``: calling gives the list of rows, each a sequence."""

    def __init__(self, build: Callable[[int], QuerySet[Any, Any]]) -> None:
        self._query = _Query(build, MARK)

    def __call__(self, key: int) -> list[Sequence[Any]]:
        return list(self._query.rows(key))


class PreparedMany(Generic[M]):
    """Rows by several numbers: ``build`` filters by a list of them (``…__in``), in one place.

    The order holds among rows of the same key: at most ``AT_ONCE`` keys are asked for in one statement.
    """

    def __init__(self, build: Callable[[Sequence[int]], QuerySet[M]]) -> None:
        self._many = _Many(build)

    def __call__(self, keys: Sequence[int]) -> list[M]:
        return [row for compiled, rows in self._many.parts(keys) for row in compiled.objects(rows)]


class PreparedManyValues:
    """The same for a query set of ``values_list``."""

    def __init__(self, build: Callable[[Sequence[int]], QuerySet[Any, Any]]) -> None:
        self._many = _Many(build)

    def __call__(self, keys: Sequence[int]) -> list[Sequence[Any]]:
        return [row for _, rows in self._many.parts(keys) for row in rows]


class _Many:
    def __init__(self, build: Callable[[Sequence[int]], QuerySet[Any, Any]]) -> None:
        self._query = _Query(lambda mark: build([mark]), MARK)

    def parts(self, keys: Sequence[int]) -> Iterator[tuple[_Compiled, Any]]:
        compiled = self._query.compiled()
        for first in range(0, len(keys), AT_ONCE):
            yield compiled, compiled.rows_of(keys[first : first + AT_ONCE])
