"""Takes the write gate before a write and drops it after; beyond that Django's backend as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

from lettaweb.lib.gate import Gate, GateClosed

_WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
SHORT = 4096  # characters of a statement whose conversion is remembered


@lru_cache(maxsize=512)
def _converted(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


class GatedCursor(base.SQLiteCursorWrapper):
    """A cursor that passes the gate for a single write outside any transaction."""

    wrapper: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not _WRITES.match(query):
            return super().execute(query, params)
        with self.wrapper.through_gate():
            return super().execute(query, params)

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is None and len(query) < SHORT:
            return _converted(query)
        return super().convert_query(query, param_names=param_names)

    def executemany(self, query: str, param_list: Any) -> Any:
        if self.connection.in_transaction:
            return super().executemany(query, param_list)
        with self.wrapper.through_gate():
            return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection with its own way through the gate that lies beside the database file."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._write_gate: Gate | None = None

    def create_cursor(self, name: Any = None) -> GatedCursor:
        cursor: GatedCursor = self.connection.cursor(factory=GatedCursor)
        cursor.wrapper = self
        return cursor

    @contextmanager
    def through_gate(self) -> Iterator[None]:
        gate = self._enter()
        try:
            yield
        finally:
            self._leave(gate)

    def is_usable(self) -> bool:
        try:
            self.connection.execute("SELECT 1")
        except self.Database.Error:
            return False
        return True

    def _start_transaction_under_autocommit(self) -> None:
        gate = self._enter()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._leave(gate)
            raise

    def _commit(self) -> Any:
        try:
            return super()._commit()  # type: ignore[misc]
        finally:
            self._leave_when_done()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()  # type: ignore[misc]
        finally:
            self._leave_when_done()

    def _close(self) -> Any:
        try:
            return super()._close()  # type: ignore[misc]
        finally:
            if self._write_gate is not None:
                self._write_gate.close()

    def _enter(self) -> Gate | None:
        """The gate that was taken by this call, None when it is held already or there is none."""
        gate = self._own_gate()
        if gate is None or gate.held:
            return None
        try:
            gate.acquire(float(self.settings_dict["OPTIONS"].get("timeout", 5)))
        except GateClosed:
            raise OperationalError("database is locked: another writer held the gate for too long") from None
        return gate

    def _leave(self, gate: Gate | None) -> None:
        if gate is not None:
            gate.release()

    def _leave_when_done(self) -> None:
        if self._write_gate is not None and not (self.connection and self.connection.in_transaction):
            self._write_gate.release()

    def _own_gate(self) -> Gate | None:
        if self._write_gate is None and not self.is_in_memory_db():
            # One gate a file: a test database beside the real one has its own.
            database = Path(str(self.settings_dict["NAME"]))
            name = "write.gate" if database.name == "lettaweb.sqlite3" else f"{database.name}.gate"
            self._write_gate = Gate(str(database.with_name(name)))
        return self._write_gate
