"""Which database errors pass: the same work may succeed later. All others are mistakes of the program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, close_old_connections

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two tries
ERRORS = (OperationalError, InterfaceError, InternalError)
# Primary result codes of SQLite: busy, locked, no memory, read-only, I/O, full, cannot open, protocol.
_SQLITE = frozenset({5, 6, 7, 8, 10, 13, 14, 15})
# Classes of PostgreSQL's SQLSTATE: connection, rollback, resources, object state, operator intervention, system.
_POSTGRESQL = frozenset({"08", "40", "53", "55", "57", "58"})
_STOOD_STILL = "25P03"  # the session was ended because its transaction did nothing for too long


def passes(error: BaseException) -> bool:
    """Whether ``error`` says that the database is away, busy or full, not that the statement is wrong."""
    if not isinstance(error, ERRORS):
        return False
    cause = error.__cause__
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _SQLITE
    state = getattr(cause, "sqlstate", None)
    if state is None:
        return not isinstance(error, InternalError)
    return state[:2] in _POSTGRESQL or state == _STOOD_STILL


def outlasting(work: Callable[[], T], seconds: float) -> T:
    """The result of ``work``, done again and again while the database is away, for at most about ``seconds``."""
    pause, end = FIRST_PAUSE, time.monotonic() + seconds
    while True:
        try:
            return work()
        except ERRORS as error:
            if not passes(error) or time.monotonic() + pause > end:
                raise
        close_old_connections()  # one that died is made anew
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
