"""/approvals/<call>/: one call with all that a person needs to decide it. Opening it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from agents.actions import desk
from agents.actions.desk.find import find
from agents.filters.context import talk_before, trail, why
from agents.filters.counts import counts_once
from agents.filters.queue import Wish, kept, next_after, wish_of
from agents.forms.arguments import Edited, boxes_of
from agents.models import CallComment, CallKind, CallState, Decision, Run, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from agents.policies.rights import DECIDE, REVEAL, can
from agents.templatetags.desk import stamp
from agents.views.pages.access import page, wants_fragment
from agents.wire import redact
from agents.wire.fields import absent, fields_of, raw_json
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.models import Risk

PANELS = ("deny", "edit", "answer", "confirm")


def call_uuid(wire: str) -> UUID:
    """The uuid in a call's wire id; a :class:`Problem` 404 for what is none: a page, not a field, was asked for."""
    found = ids.find(ToolCall.PREFIX, wire)
    if found is None:
        raise Problem(404, "There is no such call.")
    return found


def call_url(call: ToolCall, query: str = "") -> str:
    path = reverse("approval", args=[call.wire_id])
    return f"{path}?{query}" if query else path


def detail_context(request: HttpRequest, uuid: UUID, wish: Wish, **extra: Any) -> dict[str, Any]:
    """What the detail of a call needs. ``extra``: panel, edited (a form that came back), revealed, notices,
    following (the call after it, where the list knows)."""
    call = find(uuid)
    may_decide = can(request.user, DECIDE)
    panel = extra.get("panel", "") if call.waiting and may_decide else ""
    revealed: Mapping[str, Any] | None = extra.get("revealed")
    context = {
        "call": call,
        "detail_stamp": _stamp(call),
        "query": wish.query,
        "view_name": wish.view,
        "wish": wish,
        "may_decide": may_decide,
        "panel": panel,
        "fields": fields_of(call, revealed),
        "absent": absent(call),
        "why": why(call),
        "talk": talk_before(call),
        "trail": trail(call),
        "raw": raw_json(call, revealed),
        "masked": revealed is None and redact.masks(call) and can(request.user, REVEAL),
        "revealed": revealed is not None,
        "unknown": call.state == CallState.UNKNOWN,
        "at_client": call.kind == CallKind.CLIENT,
        "high": call.risk == Risk.HIGH,
        "presets": desk.PRESETS,
        "undoable": may_decide and undoable(call),
        "following": extra["following"] if "following" in extra else _following(request, call, wish, panel),
        "mine": call.held_by_id == request.user.pk and kept(call),
        "notices": extra.get("notices", ()),
        **_edit_form(call, panel, extra.get("edited")),
        **_done(str(extra.get("done") or request.GET.get("done", ""))),
    }
    return {**context, **{name: extra[name] for name in ("confirm", "typed") if name in extra}}


def _following(request: HttpRequest, call: ToolCall, wish: Wish, panel: str) -> ToolCall | None:
    """The call that a decision about ``call`` opens, named where it can be decided with one click."""
    decidable = call.waiting and not panel and can(request.user, DECIDE)
    return next_after(call, wish, request.user) if decidable else None


def _edit_form(call: ToolCall, panel: str, edited: Edited | None) -> dict[str, Any]:
    if panel != "edit":
        return {}
    return {"boxes": edited.boxes if edited else boxes_of(call), "form_error": edited.error if edited else ""}


def _done(wire: str) -> dict[str, Any]:
    """The call that was decided just before: it may be taken back."""
    uuid = ids.find(ToolCall.PREFIX, wire)
    done = ToolCall.objects.filter(uuid=uuid).select_related("agent", "tool", "step__run").first() if uuid else None
    return {"done": done, "done_undoable": undoable(done)} if done is not None else {}


def undoable(call: ToolCall) -> bool:
    """Whether a person's decision about ``call`` can be taken back: its set still waits."""
    if call.waiting or call.returned or call.decided_by_id is None:
        return False
    return ToolCall.objects.filter(message_id=call.message_id, state__in=WAITING).exists()


def detail_stamp(wire: str) -> str:
    """A text that changes with anything that the detail of a call shows; "" for none."""
    uuid = ids.find(ToolCall.PREFIX, wire)
    call = ToolCall.objects.filter(uuid=uuid).first() if uuid else None
    return _stamp(call) if call is not None else ""


def _stamp(call: ToolCall) -> str:
    talked = CallComment.objects.filter(call=call).count() + Decision.objects.filter(call=call).count()
    return f"{stamp(call)}-{talked}"


def empty_context(request: HttpRequest, wish: Wish, done: str = "") -> dict[str, Any]:
    """The detail when there is nothing to decide."""
    last = ToolCall.objects.filter(decided_at__isnull=False).order_by("-decided_at")
    return {
        "call": None,
        "wish": wish,
        "query": wish.query,
        "view_name": wish.view,
        "waiting": counts_once(request)["waiting"],
        "last": last.select_related("agent", "tool", "decided_by", "step__run").first(),
        "working": Run.objects.filter(status__in=ACTIVE).select_related("agent").order_by("-pk")[:5],
        **_done(done or request.GET.get("done", "")),
    }


def fragment(request: HttpRequest, context: dict[str, Any], *, status: int = 200, url: str = "") -> HttpResponse:
    """The detail as a part of the page, or the whole page where no script asks."""
    if not wants_fragment(request):
        from agents.views.pages.queue import queue_context

        chosen = context["call"].pk if context.get("call") else None
        whole = {**queue_context(request, context["wish"], chosen), **context, "reading": bool(chosen)}
        return render(request, "approvals/queue.html", {**whole, "chosen": chosen}, status=status)
    response = render(request, "approvals/_detail.html", context, status=status)
    if url:
        response["HX-Push-Url"] = url
    return response


@page()
def detail(request: HttpRequest, call_id: str) -> HttpResponse:
    """One call; ``panel`` opens one of its forms."""
    wish = wish_of(request.GET)
    wanted = request.GET.get("panel", "")
    panel = wanted if wanted in PANELS else ""
    return fragment(request, detail_context(request, call_uuid(call_id), wish, panel=panel))
