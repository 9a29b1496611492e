"""/approvals/: the queue in its views, many calls at once, and the pulse that keeps an open page true."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.actions import desk
from agents.filters.counts import arrived, choices, counts, counts_once, newest
from agents.filters.queue import VIEWS, Wish, calls, page_of, wish_of, with_neighbours
from agents.forms.decision import action_of, items, plain_verdict
from agents.models import Run, ToolCall
from agents.models.run import ACTIVE
from agents.policies.rights import DECIDE, can
from agents.templatetags.desk import stamp
from agents.views.pages.access import page, wants_fragment
from agents.views.pages.detail import detail_context, detail_stamp, empty_context
from tools.models import Risk

MOST_WATCHED = 400
OUTCOMES = [
    ("ran", "Done"),
    ("failed", "Failed"),
    ("denied", "Denied"),
    ("expired", "Expired"),
    ("cancelled", "Cancelled"),
    ("answered", "Answered"),
    ("interrupted", "Outcome unknown"),
]
MOST_ARRIVING = 20


def queue_context(request: HttpRequest, wish: Wish, chosen: int | None = None) -> dict[str, Any]:
    """What the list of a queue page needs."""
    now = timezone.now()
    beyond = newest(now)
    found = page_of(wish, request.user)
    return {
        "wish": wish,
        "query": wish.query,
        "view_name": wish.view,
        "title": VIEWS[wish.view],
        "page": found,
        "chosen": chosen,
        "risks": Risk.choices[::-1],
        "choices": {"outcomes": OUTCOMES} if wish.history else choices(wish),
        "chosen_here": ("outcome", "q") if wish.history else ("tool", "agent", "q"),
        "may_decide": can(request.user, DECIDE),
        "now": now,
        "newest": beyond,
        "count": counts_once(request)["waiting"],
    }


@page()
def queue(request: HttpRequest) -> HttpResponse:
    """The queue, with its first call opened beside it."""
    wish = wish_of(request.GET)
    context = queue_context(request, wish)
    if wants_fragment(request) and request.htmx.target == "queue":  # type: ignore[attr-defined]
        return render(request, "approvals/_queue.html", context)
    rows = [] if wish.history else context["page"].rows
    first, following = rows[0] if rows else None, rows[1] if len(rows) > 1 else None
    beside = detail_context(request, first.uuid, wish, following=following) if first else empty_context(request, wish)
    return render(request, "approvals/queue.html", {**context, **beside, "chosen": first.pk if first else None})


@page()
def pulse(request: HttpRequest) -> HttpResponse:
    """What has changed since a list was made: the rows that look different, how many are new, all counts.

    ``have`` are the rows on the screen (``pk.stamp`` each), ``newest`` and ``since`` say what the list knew,
    ``detail`` is the opened call.
    """
    wish, now = wish_of(request.GET), timezone.now()
    have = dict(entry.partition(".")[::2] for entry in request.GET.get("have", "").split(",")[:MOST_WATCHED] if entry)
    keys = [int(pk) for pk in have if pk.isascii() and pk.isdigit() and len(pk) < 19]
    rows = {call.pk: call for call in with_neighbours(ToolCall.objects.filter(pk__in=keys))}
    changed = {pk: call for pk, call in rows.items() if stamp(call) != have[str(pk)]}
    new = _new(request, wish, keys, now)
    context = {"wish": wish, "query": wish.query, "may_decide": can(request.user, DECIDE), "request": request}
    return JsonResponse({
        "counts": counts(request.user, now),
        "running": Run.objects.filter(status__in=ACTIVE).count(),
        "rows": {pk: _row(request, call, context) for pk, call in changed.items()},
        "gone": [pk for pk in keys if pk not in rows],
        "new": new.count(),
        "arrived": [_row(request, call, context) for call in with_neighbours(new).order_by("pk")[:MOST_ARRIVING]],
        "detail": detail_stamp(request.GET.get("detail", "")),
    })  # fmt: skip


def _new(request: HttpRequest, wish: Wish, keys: list[int], now: datetime) -> Any:
    since, beyond = _since(request.GET.get("since", "")), request.GET.get("newest", "")
    if wish.history or since is None or not (beyond.isascii() and beyond.isdigit() and len(beyond) < 19):
        return ToolCall.objects.none()
    return arrived(calls(wish, request.user, now), int(beyond), since).exclude(pk__in=keys)


def _since(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _row(request: HttpRequest, call: ToolCall, context: dict[str, Any]) -> str:
    return render_to_string("approvals/_row.html", {**context, "call": call}, request=request)


# --- many at once ------------------------------------------------------------------------------------


@page(DECIDE, methods=("POST",))
def bulk(request: HttpRequest) -> HttpResponse:
    """Decide the selected calls; without an action, or with high risk among them, ask once more."""
    wish = wish_of(request.POST)
    chosen = items(request.POST.getlist("item"))
    if not request.POST.get("action") or not chosen or _needs_second_look(request, chosen):
        return _review(request, wish, chosen)
    action = action_of(request.POST)
    verdict = plain_verdict(action, request.POST)
    results = desk.decide_many(chosen, verdict, user=request.user)
    rows = {call.uuid: call for call in _rows_of(chosen)}
    context = {
        "results": [(rows.get(result.uuid), result) for result in results],
        "summary": desk.summary(results, verdict.kind),
        "query": wish.query,
        "view_name": wish.view,
        "good": all(result.status == "done" for result in results),
    }
    return render(request, "approvals/bulk_done.html", context)


def _needs_second_look(request: HttpRequest, chosen: list[desk.Item]) -> bool:
    if request.POST.get("action") != "approve" or request.POST.get("confirm"):
        return False
    return ToolCall.objects.filter(uuid__in=[item.uuid for item in chosen], risk=Risk.HIGH).exists()


def _review(request: HttpRequest, wish: Wish, chosen: list[desk.Item]) -> HttpResponse:
    rows = {call.uuid: call for call in _rows_of(chosen)}
    picked = [(item, rows[item.uuid]) for item in chosen if item.uuid in rows]
    context = {
        "picked": picked,
        "high": sum(1 for _, call in picked if call.risk == Risk.HIGH),
        "query": wish.query,
        "view_name": wish.view,
        "wish": wish,
        "presets": desk.PRESETS,
        "action": request.POST.get("action", ""),
        "preset": request.POST.get("preset", ""),
    }
    return render(request, "approvals/bulk.html", context)


def _rows_of(chosen: list[desk.Item]) -> list[ToolCall]:
    return list(with_neighbours(ToolCall.objects.filter(uuid__in=[item.uuid for item in chosen])))
