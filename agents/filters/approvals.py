"""The queue of calls that wait, and the history of those that were decided: filters, order, pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Case, Count, DateTimeField, F, IntegerField, Q, QuerySet, Value, When
from django.http import QueryDict
from django.utils import timezone

from agents.actions.desk.find import rows
from agents.actions.desk.words import warn_before
from agents.models import Agent, CallState, Driver, ToolCall
from agents.models.toolcall import WAITING
from agents.policies.rows import keys
from lettaweb.lib import ids
from lettaweb.lib.bodies import flag, words
from lettaweb.lib.paging import Page, choice, word
from lettaweb.lib.problems import Problem
from tools.models import Risk, Tool

STATES = ("waiting", "pending", "unknown", "decided")
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
RANKS = (Risk.HIGH, Risk.MEDIUM, Risk.LOW)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many calls wait, by view. ``mine``: held by the person who asks."""

    waiting: int
    pending: int
    unknown: int
    mine: int
    expiring: int
    high: int


def counts(user: Any) -> Counts:
    """One read over the waiting calls."""
    now = timezone.now()
    found = ToolCall.objects.filter(state__in=WAITING).aggregate(
        waiting=Count("pk"),
        pending=Count("pk", filter=Q(state=CallState.PENDING)),
        unknown=Count("pk", filter=Q(state=CallState.UNKNOWN)),
        mine=Count("pk", filter=Q(held_by=user, held_until__gt=now)),
        expiring=Count("pk", filter=Q(expires_at__lte=now + warn_before())),
        high=Count("pk", filter=Q(risk=Risk.HIGH)),
    )
    return Counts(**found)


def calls_of(query: QueryDict, user: Any) -> QuerySet[ToolCall]:
    """The calls that ``query`` asks for: state, agent_id and tool (repeatable), risk, mine, expiring, batch.

    ``tool`` is a name or a wire id; ``batch`` true, or the id of one. Raises a :class:`Problem` 422.
    """
    found = _in_state(choice(query, "state", STATES, "waiting"))
    if agents := words(query, "agent_id"):
        found = found.filter(agent__in=keys(Agent, agents))
    if tools := words(query, "tool"):
        found = found.filter(_of_tools(tools))
    if risks := words(query, "risk"):
        _check_risks(risks)
        found = found.filter(risk__in=risks)
    if flag(query, "expiring"):
        found = found.filter(expires_at__lte=timezone.now() + warn_before())
    found = _of_person(found, query, user)
    return _of_batch(found, word(query, "batch"))


def page(query: QueryDict, user: Any, given: Page) -> tuple[list[ToolCall], bool]:
    """One page of :func:`calls_of` and whether more follow. ``given.after`` is the last call of the page before.

    What waits: those that expire soon by their time, then by risk, then the oldest. What was decided: the
    latest first. At most ``given.limit`` calls.
    """
    found = calls_of(query, user)
    ordered = _latest(found, given) if query.get("state") == "decided" else _urgent(found, given)
    shown = list(ordered[: given.limit + 1])
    return shown[: given.limit], len(shown) > given.limit


def _in_state(state: str) -> QuerySet[ToolCall]:
    if state == "decided":
        return rows().filter(decided_at__isnull=False).exclude(state__in=WAITING)
    return rows().filter(state__in=WAITING if state == "waiting" else [state])


def _of_tools(names: list[str]) -> Q:
    uuids = [uuid for name in names if (uuid := ids.find(Tool.PREFIX, name))]
    return Q(name__in=names) | Q(tool__uuid__in=uuids)


def _check_risks(risks: list[str]) -> None:
    if wrong := [risk for risk in risks if risk not in Risk.values]:
        raise Problem(422, f"risk: expected one of {', '.join(Risk.values)}, not '{wrong[0][:40]}'")


def _of_person(found: QuerySet[ToolCall], query: QueryDict, user: Any) -> QuerySet[ToolCall]:
    if not flag(query, "mine"):
        return found
    if query.get("state") == "decided":
        return found.filter(decided_by=user)
    return found.filter(held_by=user, held_until__gt=timezone.now())


def _of_batch(found: QuerySet[ToolCall], batch: str) -> QuerySet[ToolCall]:
    if not batch:
        return found
    found = found.filter(step__run__driver=Driver.BATCH)
    if batch.lower() in ("true", "1", "yes"):
        return found
    return found.filter(step__run__metadata__batch_id=batch)


# --- order ----------------------------------------------------------------------------------------


def _urgent(found: QuerySet[ToolCall], given: Page) -> QuerySet[ToolCall]:
    ranked = _ranked(found)
    if given.after and (last := _ranked(_named(given.after)).first()):
        same = Q(soon=last.soon) & (Q(rank__gt=last.rank) | Q(rank=last.rank, pk__gt=last.pk))
        ranked = ranked.filter(Q(soon__gt=last.soon) | same)
    ordered: QuerySet[ToolCall] = ranked.order_by("soon", "rank", "pk")
    return ordered


def _named(wire: str) -> QuerySet[ToolCall]:
    uuid = ids.find(ToolCall.PREFIX, wire)
    return ToolCall.objects.filter(uuid=uuid) if uuid else ToolCall.objects.none()


def _ranked(found: QuerySet[ToolCall]) -> Any:
    limit = timezone.now() + warn_before()
    soon = Case(When(expires_at__lte=limit, then=F("expires_at")), default=Value(NEVER), output_field=DateTimeField())
    ranks = [When(risk=risk, then=Value(number)) for number, risk in enumerate(RANKS)]
    return found.annotate(soon=soon, rank=Case(*ranks, default=Value(len(RANKS)), output_field=IntegerField()))


def _latest(found: QuerySet[ToolCall], given: Page) -> QuerySet[ToolCall]:
    last = _named(given.after).first()
    if last is not None and last.decided_at is not None:
        before = Q(decided_at=last.decided_at, pk__lt=last.pk) | Q(decided_at__lt=last.decided_at)
        found = found.filter(before, decided_at__lte=last.decided_at)
    return found.order_by("-decided_at", "-pk")
