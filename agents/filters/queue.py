"""The operators' queue: which calls a view shows, in which order, page by page, and how many there are.

Waiting calls come in the order in which they should be decided: those that expire soon (soonest first), then
high, medium and low risk, each oldest first. Every part is one seek in an index, so a page costs the same
with ten calls and with ten thousand. History is newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from agents.actions.desk import warn_before
from agents.models import Agent, CallState, Driver, ToolCall
from agents.models.toolcall import WAITING, Outcome, calls_that_wait
from agents.wire import redact
from lettaweb.lib import ids
from lettaweb.lib.text import clean_text
from tools.models import Risk, Tool

VIEWS = {
    "waiting": "Waiting",
    "mine": "Mine",
    "expiring": "Expiring soon",
    "unknown": "Outcome unknown",
    "history": "History",
}
RISKS = (Risk.HIGH, Risk.MEDIUM, Risk.LOW)
PAGE = 40
LOOK_SECONDS = 90  # a hold as long as a page is open; what is kept for longer is somebody's own
SHOWN = (
    "uuid",
    "agent",
    "tool",
    "held_by",
    "decided_by",
    "name",
    "kind",
    "gated",
    "arguments",
    "edited_arguments",
    "digest",
    "state",
    "outcome",
    "version",
    "risk",
    "asked_at",
    "expires_at",
    "expire_action",
    "overdue",
    "decided_at",
    "held_until",
    "result_ok",
    "step__run__driver",
    "step__run__options",
    "message",
    "returned",
    "call_id",
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a queue page is asked for: a view and its filters, as they stand in the URL."""

    view: str = "waiting"
    risk: str = ""
    tool: str = ""
    agent: str = ""
    source: str = ""
    outcome: str = ""
    q: str = ""
    after: str = ""

    @property
    def query(self) -> str:
        """The filters as a query string without the cursor, "" for the plain queue."""
        return urlencode({name: value for name, value in self.named if value})

    @property
    def named(self) -> list[tuple[str, str]]:
        view = "" if self.view == "waiting" else self.view
        rest = ("risk", "tool", "agent", "source", "outcome", "q")
        return [("view", view), *[(name, getattr(self, name)) for name in rest]]

    @property
    def filtered(self) -> bool:
        """Whether it leaves something of its view out."""
        return any(value for _, value in self.named[1:])

    @property
    def history(self) -> bool:
        return self.view == "history"

    def but(self, **changes: str) -> str:
        """The query string of this wish with other values; from the first page."""
        return replace(self, after="", **changes).query


def wish_of(query: Mapping[str, Any]) -> Wish:
    """Read a query string; what it does not know is ignored."""
    view, risk = str(query.get("view", "")), str(query.get("risk", ""))
    texts = {name: clean_text(str(query.get(name, "")))[:300] for name in ("tool", "agent", "after", "outcome", "q")}
    return Wish(
        view=view if view in VIEWS else "waiting",
        risk=risk if risk in RISKS else "",
        source="batch" if query.get("source") == "batch" else "",
        **texts,
    )


def calls(wish: Wish, user: Any, now: datetime | None = None) -> QuerySet[ToolCall]:
    """The calls of a view with its filters, in no order."""
    now = now or timezone.now()
    if wish.history:
        return _filtered(ToolCall.objects.filter(decided_at__isnull=False).exclude(state__in=WAITING), wish)
    rows = _filtered(calls_that_wait(), wish)
    if wish.view == "unknown":
        return rows.filter(state=CallState.UNKNOWN)
    if wish.view == "mine":
        return rows.filter(held_by=user, held_until__gt=kept_until(now))
    if wish.view == "expiring":
        return rows.filter(expires_at__lte=now + warn_before())
    return rows


def kept_until(now: datetime) -> datetime:
    """The moment that a hold reaches beyond which is more than a look."""
    return now + timedelta(seconds=LOOK_SECONDS)


def kept(call: ToolCall) -> bool:
    """Whether somebody keeps the call for longer than a look."""
    return call.held_until is not None and call.held_until > kept_until(timezone.now())


def _filtered(rows: QuerySet[ToolCall], wish: Wish) -> QuerySet[ToolCall]:
    if wish.risk:
        rows = rows.filter(risk=wish.risk)
    if wish.tool:
        rows = rows.filter(name=wish.tool)
    if wish.agent:
        uuid = ids.find("agent", wish.agent)
        rows = rows.filter(agent__in=Agent.objects.filter(uuid=uuid).values("pk")) if uuid else rows.none()
    if wish.source:
        rows = rows.filter(step__run__driver=Driver.BATCH)
    if wish.history and wish.outcome and wish.outcome in Outcome.values:
        rows = rows.filter(outcome=wish.outcome)
    return rows.filter(_mentions(wish.q.strip())) if wish.q.strip() else rows


def _mentions(q: str) -> Q:
    """Calls that mention ``q``. Arguments count where none is secret: nobody finds a secret out by searching."""
    tools = Tool.objects.only("json_schema", "secret_fields")
    secretive = [tool.pk for tool in tools if redact.of_tool(tool).declared]
    given = Q(arguments__icontains=q) | Q(edited_arguments__icontains=q)
    people = Q(agent__name__icontains=q) | Q(decided_by__username__icontains=q) | Q(reason__icontains=q)
    named = Q(name__icontains="_".join(q.split()))
    return named | people | (given & Q(tool__isnull=False) & ~Q(tool__in=secretive))


def with_neighbours(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """What a row of the queue shows of a call. Agents, tools and people are read once, however many rows they have."""
    agents = Prefetch("agent", Agent.objects.only("uuid", "name"))
    tools = Prefetch("tool", Tool.objects.only("name", "json_schema", "secret_fields", "metadata"))
    shown = rows.select_related("step__run").only(*SHOWN)
    return shown.prefetch_related(agents, tools, "held_by", "decided_by")


# --- pages -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the order a page begins: beyond (``value``, ``pk``) of part ``part``, seen from ``horizon``."""

    horizon: datetime
    part: str = ""
    value: datetime | None = None
    pk: int = 0

    def encode(self) -> str:
        value = f"{self.value.timestamp():.6f}" if self.value else ""
        return f"{self.horizon.timestamp():.6f}~{self.part}~{value}~{self.pk}"


def place_of(text: str, now: datetime) -> Place:
    """The place that a cursor names; the beginning for anything else."""
    try:
        horizon, part, value, pk = text.split("~")
        moment = _moment(value) if value else None
        return Place(_moment(horizon), part, moment, int(pk))
    except (ValueError, OverflowError, OSError):
        return Place(now + warn_before())


def _moment(text: str) -> datetime:
    return datetime.fromtimestamp(float(text), UTC)


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order, and the cursor of the page after them ("" when there is none)."""

    rows: list[ToolCall]
    more: str = ""


def page_of(wish: Wish, user: Any, *, size: int = PAGE) -> Page:
    """The page of a queue that ``wish`` asks for."""
    now = timezone.now()
    place = place_of(wish.after, now)
    rows = with_neighbours(calls(wish, user, now))
    return sliced(rows, wish, place, size)


def sliced(rows: QuerySet[ToolCall], wish: Wish, place: Place, size: int) -> Page:
    """The page of ``rows`` that begins at ``place``, in the order of the view of ``wish``."""
    found = _in_order(rows, _history(rows, place, size + 1) if wish.history else _waiting(rows, place, size + 1))
    if len(found) <= size:
        return Page(found)
    return Page(found[:size], after(found[size - 1], wish, place.horizon).encode())


def after(call: ToolCall, wish: Wish, horizon: datetime) -> Place:
    """The place right behind ``call``."""
    if wish.history:
        return Place(horizon, "history", call.decided_at, call.pk)
    if call.expires_at is not None and call.expires_at <= horizon:
        return Place(horizon, "due", call.expires_at, call.pk)
    return Place(horizon, call.risk, None, call.pk)


def next_after(call: ToolCall, wish: Wish, user: Any) -> ToolCall | None:
    """What is to be decided after ``call``: the one behind it in the queue, else the first."""
    horizon = timezone.now() + warn_before()
    rows = calls(wish, user).exclude(pk=call.pk)
    found = _waiting(rows, after(call, wish, horizon), 1) or _waiting(rows, Place(horizon), 1)
    return next(iter(_in_order(with_neighbours(rows), found)), None)


def _in_order(rows: QuerySet[ToolCall], keys: list[int]) -> list[ToolCall]:
    """The calls ``keys`` of ``rows``: only the keys of a page are sorted in the database, not whole rows."""
    found = {call.pk: call for call in rows.filter(pk__in=keys)}
    return [found[pk] for pk in keys if pk in found]


def _waiting(rows: QuerySet[ToolCall], place: Place, count: int) -> list[int]:
    found: list[int] = []
    for part in _parts(rows, place):
        found += list(part.values_list("pk", flat=True)[: count - len(found)])
        if len(found) >= count:
            break
    return found


def _parts(rows: QuerySet[ToolCall], place: Place) -> Iterator[QuerySet[ToolCall]]:
    """The parts of the queue from ``place`` on, each in its order."""
    begun = place.part not in ("due", *RISKS)
    if begun or place.part == "due":
        yield _due(rows, place)
        begun = True
    later = rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=place.horizon))
    for risk in RISKS:
        if begun or place.part == risk:
            beyond = place.pk if place.part == risk else 0
            yield later.filter(risk=risk, pk__gt=beyond).order_by("pk")
            begun = True


def _due(rows: QuerySet[ToolCall], place: Place) -> QuerySet[ToolCall]:
    due = rows.filter(expires_at__lte=place.horizon).order_by("expires_at", "pk")
    if place.value is None:
        return due
    beyond = Q(expires_at__gt=place.value) | Q(pk__gt=place.pk)
    return due.filter(beyond, expires_at__gte=place.value)


def _history(rows: QuerySet[ToolCall], place: Place, count: int) -> list[int]:
    rows = rows.order_by("-decided_at", "-pk")
    if place.value is not None:
        beyond = Q(decided_at__lt=place.value) | Q(pk__lt=place.pk)
        rows = rows.filter(beyond, decided_at__lte=place.value)
    return list(rows.values_list("pk", flat=True)[:count])
