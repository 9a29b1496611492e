"""What people do beside deciding, by form: hold, talk, give time, look, take back, free an agent."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from agents.actions import desk
from agents.actions.desk.find import find
from agents.filters.queue import LOOK_SECONDS, wish_of
from agents.forms.decision import seen
from agents.policies import rows
from agents.policies.rights import DECIDE, REVEAL
from agents.templatetags.desk import stamp
from agents.views.pages.access import back, page, say, wants_fragment
from agents.views.pages.decide import told
from agents.views.pages.detail import call_url, call_uuid, detail_context, detail_stamp, fragment
from lettaweb.lib.problems import Problem

HOLD_SECONDS = 30 * 60


def _then_again(request: HttpRequest, call_id: str, act: Callable[[], object]) -> HttpResponse:
    """Do it, and show the call as it is then."""
    notices = []
    status = 200
    try:
        act()
    except Problem as problem:
        status = problem.status
        notices.append(("warning", told(problem, call_uuid(call_id))))
    wish = wish_of(request.POST)
    if notices or wants_fragment(request):
        return fragment(request, detail_context(request, call_uuid(call_id), wish, notices=notices), status=status)
    return redirect(call_url(find(call_uuid(call_id)), wish.query))


@page(DECIDE, methods=("POST",))
def claim(request: HttpRequest, call_id: str) -> HttpResponse:
    """Take a call, so that others see who is at it; ``look``: only while the page is open."""
    looking = bool(request.POST.get("look"))
    seconds = LOOK_SECONDS if looking else HOLD_SECONDS
    if not looking:
        return _then_again(request, call_id, lambda: desk.claim(call_uuid(call_id), request.user, seconds))
    try:
        call = desk.claim(call_uuid(call_id), request.user, seconds)
    except Problem as problem:
        if problem.status != 409:
            raise
        return HttpResponse(status=204)
    return JsonResponse({"row": stamp(call), "detail": detail_stamp(call.wire_id)})


@page(DECIDE, methods=("POST",))
def release(request: HttpRequest, call_id: str) -> HttpResponse:
    """Let go of a call."""
    if request.POST.get("look"):
        desk.release(call_uuid(call_id), request.user)
        return HttpResponse(status=204)
    return _then_again(request, call_id, lambda: desk.release(call_uuid(call_id), request.user))


@page(methods=("POST",))
def comment(request: HttpRequest, call_id: str) -> HttpResponse:
    """Say something about a call to other people."""
    text = request.POST.get("text", "").replace("\r\n", "\n")
    return _then_again(request, call_id, lambda: desk.comment(call_uuid(call_id), request.user, text))


@page(DECIDE, methods=("POST",))
def extend(request: HttpRequest, call_id: str) -> HttpResponse:
    """Give a call more time."""
    minutes = request.POST.get("minutes", "15")
    number = int(minutes) if minutes.isascii() and minutes.isdigit() and len(minutes) < 7 else 0
    return _then_again(request, call_id, lambda: desk.extend(call_uuid(call_id), request.user, number))


@page(DECIDE, methods=("POST",))
def undo(request: HttpRequest, call_id: str) -> HttpResponse:
    """Take a decision back while the set of the call still waits."""
    version = seen(request.POST).version
    return _then_again(request, call_id, lambda: desk.undo(call_uuid(call_id), version=version, user=request.user))


@page(REVEAL, methods=("POST",))
def reveal(request: HttpRequest, call_id: str) -> HttpResponse:
    """Show masked arguments once; that somebody looked is recorded."""
    shown = desk.reveal(call_uuid(call_id), request.user)
    return fragment(request, detail_context(request, call_uuid(call_id), wish_of(request.POST), revealed=shown))


@page(DECIDE, methods=("POST",))
def unstick(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Close all that waits in a conversation, so that its agent takes messages again."""
    conversation = rows.conversation(conversation_id)
    closed = desk.unstick(conversation, request.user, request.POST.get("reason"))
    text = f"{len(closed)} call{'s' if len(closed) != 1 else ''} closed; the agent takes messages again."
    say(request, text if closed else "Nothing was waiting there.", level=messages.SUCCESS if closed else messages.INFO)
    return redirect(back(request, f"/agents/{conversation.agent.wire_id}/"))
