"""Which database errors pass."""

from __future__ import annotations

import sqlite3

import pytest
from django.db import DatabaseError, IntegrityError, InternalError, OperationalError

from lettaweb.lib.transient import passes


class Refused(Exception):
    """What PostgreSQL's driver raises: it carries a SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("state", ["08006", "40001", "40P01", "53300", "55P03", "57P01", "58030"])
def test_what_postgresql_may_take_later_passes(state: str) -> None:
    assert passes(caused(OperationalError(), Refused(state)))


def test_a_transaction_that_stood_still_for_too_long_passes() -> None:
    assert passes(caused(InternalError(), Refused("25P03")))


@pytest.mark.parametrize(
    "error",
    [
        caused(InternalError(), Refused("25P02")),  # a statement after one that failed
        caused(InternalError(), Refused("XX000")),
        caused(OperationalError(), Refused("42601")),
        caused(IntegrityError(), Refused("40002")),
        InternalError("without a cause"),
        DatabaseError(),
        ValueError(),
    ],
)
def test_a_mistake_does_not_pass(error: Exception) -> None:
    assert not passes(error)


@pytest.mark.parametrize(("code", "expected"), [(5, True), (5 | 2 << 8, True), (13, True), (1, False)])
def test_sqlite_is_judged_by_its_primary_code(code: int, expected: bool) -> None:
    cause = sqlite3.OperationalError()
    cause.sqlite_errorcode = code
    assert passes(caused(OperationalError(), cause)) is expected


def test_a_connection_that_failed_without_a_code_passes() -> None:
    assert passes(OperationalError("server closed the connection unexpectedly"))
