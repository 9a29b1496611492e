"""Rows held in place: shared locks, which Django's querysets do not know.

Many transactions may hold a row at once; who wants to change or delete it waits for all of them. Where
transactions that write follow each other anyway (SQLite) there is nothing to lock.
"""

from __future__ import annotations

from typing import Any, Literal

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet


def held(rows: QuerySet[Any, Any], lock: Literal["SHARE", "KEY SHARE"]) -> list[tuple[Any, ...]]:
    """The tuples of ``rows`` (a ``values_list`` of plain columns), held until the transaction ends.

    SHARE keeps a row as it is, KEY SHARE only keeps it from being deleted.
    """
    if not connection.features.has_select_for_update:
        return list(rows)
    try:
        sql, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} FOR {lock}", values)
        return list(cursor.fetchall())
