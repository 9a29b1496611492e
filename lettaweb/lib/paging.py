"""Pages of rows by cursor: query parameters in, a bounded slice of rows out.

Rows order by their bigint ``id``; a cursor is the wire id of a row (``PREFIX-uuid``) and is turned into
a position once, so that a deep page is an index seek like the first one. Three styles exist on the wire:

- :func:`shown` (agents, tools, blocks, conversations, steps): after = further down the list shown, before =
  further up, and a page ends next to its cursor, so that both directions can be walked;
- :func:`timeline` (runs): after = newer, before = older, whatever the order;
- :func:`chronological` (messages): after = newer, before = older, always answered oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from lettaweb.lib import ids
from lettaweb.lib.bodies import flag
from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean_text

Order = Literal["asc", "desc"]
M = TypeVar("M", bound=Model)

LARGEST_LIMIT = 100_000
_DIGITS = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Page:
    """What a list was asked for. ``before`` and ``after`` are cursors as they were sent; "" is none."""

    limit: int
    descending: bool
    before: str = ""
    after: str = ""
    order_by: str = "created_at"


def page_of(
    query: QueryDict,
    *,
    limit: int = 50,
    order: Order = "desc",
    order_by: tuple[str, ...] = ("created_at",),
) -> Page:
    """The page that ``query`` asks for, with a route's own defaults.

    ``ascending`` is checked and otherwise without effect (``order`` has a default that wins);
    ``sort_by`` counts where ``order_by`` was not sent. Raises :class:`Problem` 422.
    """
    flag(query, "ascending")
    return Page(
        limit=_limit(query, limit),
        descending=choice(query, "order", ("asc", "desc"), order) == "desc",
        before=_bound(query, "before"),
        after=_bound(query, "after"),
        order_by=_order_by(query, order_by),
    )


def shown(rows: QuerySet[M], page: Page, cursors: QuerySet[M] | None = None) -> list[M]:
    """A page where after and before mean further down and further up the list shown.

    ``order_by`` names a column of ``rows`` (created_at: the ``id``); rows without a value come last in
    both orders. An unknown cursor is ignored; ``cursors`` are the rows that it may be (any of the model),
    given where the column is an annotation. At most two reads and one per cursor.
    """
    if page.order_by != "created_at":
        return _shown_by_column(rows, page, _everywhere(rows) if cursors is None else cursors)
    if after := _position(rows, page.after):
        rows = rows.filter(_beyond("id", after, page.descending))
    if before := _position(rows, page.before):
        rows = rows.filter(_beyond("id", before, not page.descending))
    return _take(rows, page, up=bool(before and not after))


def timeline(rows: QuerySet[M], page: Page) -> list[M]:
    """A page where after is newer and before is older in both orders. An unknown cursor is ignored."""
    if after := _position(rows, page.after):
        rows = rows.filter(id__gt=after)
    if before := _position(rows, page.before):
        rows = rows.filter(id__lt=before)
    return _take(rows, page)


def chronological(rows: QuerySet[M], page: Page, position: Callable[[str], int]) -> list[M]:
    """The newest (order desc) or oldest (asc) rows of the window after/before, oldest first in both.

    ``position`` turns a cursor into the ``id`` of its row, or raises the :class:`Problem` of an unknown one.
    """
    if page.after:
        rows = rows.filter(id__gt=position(page.after))
    if page.before:
        rows = rows.filter(id__lt=position(page.before))
    found = _take(rows, page)
    return found[::-1] if page.descending else found


# --- query parameters -----------------------------------------------------------------------------


def choice(query: QueryDict, name: str, allowed: tuple[str, ...], default: str) -> str:
    """The parameter ``name``, one of ``allowed``; 422 for any other value."""
    value = query.get(name)
    if value is None:
        return default
    if value not in allowed:
        raise Problem(422, f"{name}: expected one of {', '.join(allowed)}")
    return value


def word(query: QueryDict, name: str) -> str:
    """The parameter ``name`` as text that any database takes, "" when it was not sent."""
    return clean_text(query.get(name) or "")


def _bound(query: QueryDict, name: str) -> str:
    """A cursor as it was sent, but for a NUL: what replaces it is no part of any cursor either."""
    return clean_text((query.get(name) or "").replace("\0", "\ufffd"))


def _limit(query: QueryDict, default: int) -> int:
    value = query.get("limit")
    if value is None:
        return default
    if not _DIGITS.fullmatch(value) or int(value) > LARGEST_LIMIT:
        raise Problem(422, f"limit: expected a whole number from 0 to {LARGEST_LIMIT}")
    return int(value)


def _order_by(query: QueryDict, allowed: tuple[str, ...]) -> str:
    if "order_by" in query:
        return choice(query, "order_by", allowed, allowed[0])
    legacy = query.get("sort_by")
    return legacy if legacy in allowed else allowed[0]


# --- rows -----------------------------------------------------------------------------------------


def _take(rows: QuerySet[M], page: Page, *, up: bool = False) -> list[M]:
    """The first rows of the page's order; ``up``: the last ones."""
    found = list(rows.order_by("-id" if page.descending != up else "id")[: page.limit]) if page.limit else []
    return found[::-1] if up else found


def _beyond(column: str, value: object, descending: bool) -> Q:
    return Q(**{f"{column}__{'lt' if descending else 'gt'}": value})


def _position(rows: QuerySet[M], cursor: str) -> int | None:
    """The ``id`` of the cursor's row, wherever it is: it need not match the list's filters."""
    found = _cursor(_everywhere(rows), cursor, "id")
    return cast(int, found[0]) if found else None


def _everywhere(rows: QuerySet[M]) -> QuerySet[M]:
    return rows.model._base_manager.all()


def _cursor(rows: QuerySet[M], cursor: str, *columns: str) -> tuple[Any, ...] | None:
    uuid = ids.find(getattr(rows.model, "PREFIX", ""), cursor)
    if uuid is None:
        return None
    return rows.filter(uuid=uuid).values_list(*columns).first()


@dataclass(frozen=True, slots=True)
class _Edge:
    """A cursor's place in an order by a column: its value there, its ``id``, and which way to look from it."""

    column: str
    value: object
    row: int
    descending: bool

    def beyond(self, rows: QuerySet[M]) -> QuerySet[M]:
        """The rows with a value that come beyond (value, row)."""
        # The first condition repeats the bound of the second: an index can seek that one.
        reach = {f"{self.column}__{'lte' if self.descending else 'gte'}": self.value}
        strictly = _beyond(self.column, self.value, self.descending) | _beyond("id", self.row, self.descending)
        return rows.filter(strictly, **reach)

    def beyond_empty(self, rows: QuerySet[M]) -> QuerySet[M]:
        """The rows without a value that come beyond a row without one."""
        return rows.filter(_beyond("id", self.row, self.descending))


def _shown_by_column(rows: QuerySet[M], page: Page, cursors: QuerySet[M]) -> list[M]:
    """Rows with a value by (column, id), then those without by id: two seeks instead of one sort."""
    valued = rows.filter(**{f"{page.order_by}__isnull": False})
    empty = rows.filter(**{f"{page.order_by}__isnull": True})
    if after := _cursor(cursors, page.after, page.order_by, "id"):
        edge = _Edge(page.order_by, after[0], after[1], page.descending)
        if edge.value is None:
            valued, empty = valued.none(), edge.beyond_empty(empty)
        else:
            valued = edge.beyond(valued)
    if before := _cursor(cursors, page.before, page.order_by, "id"):
        edge = _Edge(page.order_by, before[0], before[1], not page.descending)
        if edge.value is None:
            empty = edge.beyond_empty(empty)
        else:
            valued, empty = edge.beyond(valued), empty.none()
    return _take_both(valued, empty, page, up=before is not None and after is None)


def _take_both(valued: QuerySet[M], empty: QuerySet[M], page: Page, *, up: bool) -> list[M]:
    sign = "-" if page.descending != up else ""
    parts = [valued.order_by(f"{sign}{page.order_by}", f"{sign}id"), empty.order_by(f"{sign}id")]
    found: list[M] = []
    for rows in parts[::-1] if up else parts:
        found += rows[: page.limit - len(found)]
    return found[::-1] if up else found
