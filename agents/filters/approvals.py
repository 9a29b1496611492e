"""Which calls the REST API of the desk lists; their order and pages are those of :mod:`agents.filters.queue`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from agents.actions.desk.find import rows
from agents.actions.desk.words import warn_before
from agents.filters.queue import Page, Wish, place_of, sliced
from agents.models import Agent, CallState, Driver, ToolCall
from agents.models.toolcall import WAITING, WAITS, calls_that_wait
from agents.policies.rows import keys
from lettaweb.lib import ids
from lettaweb.lib.bodies import flag, words
from lettaweb.lib.paging import choice, word
from lettaweb.lib.problems import Problem
from tools.models import Risk, Tool

STATES = ("waiting", "pending", "unknown", "decided")


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
    found = calls_that_wait().aggregate(
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


def page(query: QueryDict, user: Any, limit: int) -> Page:
    """One page of :func:`calls_of` in the order of the desk; ``after`` is where the page before ended."""
    wish = Wish(view="history" if query.get("state") == "decided" else "waiting")
    place = place_of(query.get("after") or "", timezone.now())
    return sliced(calls_of(query, user), wish, place, limit)


def _in_state(state: str) -> QuerySet[ToolCall]:
    if state == "decided":
        return rows().filter(decided_at__isnull=False).exclude(state__in=WAITING)
    found = rows().filter(WAITS)
    return found if state == "waiting" else found.filter(state=state)


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
