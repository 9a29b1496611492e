"""Decisions by form. A form names its call and the version that it shows: what has changed is shown, not decided."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.actions import desk
from agents.actions.desk.find import find
from agents.filters.queue import Wish, next_after, wish_of
from agents.forms.arguments import Edited, edited
from agents.forms.decision import Seen, action_of, plain_verdict, seen
from agents.models import ToolCall
from agents.policies.rights import DECIDE
from agents.views.pages.access import page, wants_fragment, words_of
from agents.views.pages.detail import call_url, call_uuid, detail_context, empty_context, fragment
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.models import Risk


@dataclass(frozen=True, slots=True)
class Post:
    """A decision form on its way through."""

    request: HttpRequest
    call: ToolCall
    wish: Wish
    action: str
    seen: Seen

    @property
    def sure(self) -> bool:
        return bool(self.request.POST.get("confirm")) or self.call.risk != Risk.HIGH


@page(DECIDE, methods=("POST",))
def decide(request: HttpRequest, call_id: str) -> HttpResponse:
    """Approve, approve with changes, deny or answer; then the next call opens."""
    call = find(call_uuid(call_id))
    post = Post(request, call, wish_of(request.POST), action_of(request.POST), seen(request.POST))
    try:
        return _edit(post) if post.action == "edit" else _plain(post)
    except Problem as problem:
        return _again(post, problem)


def _plain(post: Post) -> HttpResponse:
    if post.action == "approve" and not post.sure:
        _still_as_seen(post)
        return _show(post, panel="confirm")
    if post.action == "answer" and "result" not in post.request.POST:
        return _show(post, panel="answer")
    return _decided(post, plain_verdict(post.action, post.request.POST))


def _edit(post: Post) -> HttpResponse:
    form = edited(post.call, post.request.POST)
    if form.arguments is None:
        return _show(post, panel="edit", edited=form, status=422)
    if not post.sure:
        _still_as_seen(post)
        return _show(post, panel="edit", edited=form, confirm=True)
    text = json.dumps(form.arguments, ensure_ascii=False) if form.changed else None
    try:
        return _decided(post, desk.approve(text, note=post.request.POST.get("note")))
    except Problem as problem:
        if problem.status != 422:
            raise
        told = Edited(form.boxes, None, changed=True, error=words_of(problem))
        return _show(post, panel="edit", edited=told, status=422)


def _still_as_seen(post: Post) -> None:
    """Ask once more only about what is still as it was shown."""
    call = post.call
    if not call.waiting or (call.version, call.digest) != (post.seen.version, post.seen.digest):
        raise Problem(409, "This call has changed since it was shown.")


def _decided(post: Post, verdict: desk.Verdict) -> HttpResponse:
    uuid, seen_ = post.call.uuid, post.seen
    desk.decide(uuid, verdict, version=seen_.version, digest=seen_.digest, user=post.request.user)
    return go_on(post.request, post.call, post.wish)


def go_on(request: HttpRequest, call: ToolCall, wish: Wish) -> HttpResponse:
    """After a decision: the next call, with a word about the last one."""
    following = _following(request, call, wish)
    query = "&".join(part for part in (wish.query, f"done={call.wire_id}") if part)
    url = call_url(following, wish.query) if following else _queue_url(wish.query)
    if not wants_fragment(request):
        return redirect(call_url(following, query) if following else _queue_url(query))
    if following is not None:
        context = detail_context(request, following.uuid, wish, done=call.wire_id)
    else:
        context = empty_context(request, wish, done=call.wire_id)
    return fragment(request, context, url=url)


def _queue_url(query: str) -> str:
    return f"{reverse('approvals')}?{query}" if query else reverse("approvals")


def _following(request: HttpRequest, call: ToolCall, wish: Wish) -> ToolCall | None:
    """The call that the page had next, while it still waits; else the next one in the queue."""
    wanted = ids.find(ToolCall.PREFIX, request.POST.get("next", ""))
    named = ToolCall.objects.filter(uuid=wanted).exclude(pk=call.pk).first() if wanted else None
    if named is not None and named.waiting:
        return named
    return None if wish.history else next_after(call, wish, request.user)


def _show(post: Post, *, status: int = 200, **extra: Any) -> HttpResponse:
    typed = {name: post.request.POST.get(name, "") for name in ("reason", "preset", "result", "note")}
    context = detail_context(post.request, post.call.uuid, post.wish, typed=typed, **extra)
    return fragment(post.request, context, status=status)


def _again(post: Post, problem: Problem) -> HttpResponse:
    """The same call as it is now, with the reason why nothing was decided."""
    said = ("error" if problem.status != 409 else "warning", told(problem, post.call.uuid))
    return _show(post, status=problem.status, notices=[said])


def told(problem: Problem, uuid: UUID) -> str:
    """A refusal in words for the person at the desk: who was faster, and when, where it is known."""
    detail = problem.detail
    if isinstance(detail, str):
        return detail
    if detail.get("code") == "ALREADY_DECIDED":
        who = detail.get("decided_by")
        return f"Already decided{f' by {who}' if who else ''}: your decision was not recorded."
    if detail.get("code") == "CHANGED":
        return "This call has changed since it was shown. Please look at it again; nothing was decided."
    return words_of(problem)
