"""Who may open a page, and what a refusal looks like there. Nothing of a page stays in a browser's cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from agents.policies.rights import VIEW, can
from lettaweb.lib.problems import Problem

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def page(right: str = VIEW, *, methods: tuple[str, ...] = ("GET", "HEAD")) -> Callable[[View[P]], Any]:
    """A view for people who are logged in and have ``right``; a :class:`Problem` becomes a page of its own."""

    def decorate(view: View[P]) -> Any:
        @never_cache
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                return _to_login(request)
            if request.method not in methods:
                return HttpResponse("Method Not Allowed", status=405, headers={"Allow": ", ".join(methods)})
            if not can(request.user, right):
                return refused(request, Problem(403, "Your role does not allow this."))
            try:
                return view(request, *args, **kwargs)
            except Problem as problem:
                return refused(request, problem)

        return guarded

    return decorate


def _to_login(request: HttpRequest) -> HttpResponse:
    if wants_fragment(request):
        return HttpResponseClientRedirect(
            f"{settings.LOGIN_URL}?next={request.headers.get('HX-Current-URL-Path', '/')}"
        )
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")


def wants_fragment(request: HttpRequest) -> bool:
    """Whether the page's script asks for a part of a page; going back in history wants it whole."""
    htmx: Any = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.history_restore_request


def words_of(problem: Problem) -> str:
    """What a refusal says to a person."""
    detail = problem.detail
    text = detail if isinstance(detail, str) else str(detail.get("message", detail))
    return text.removeprefix("CONFLICT: ")


def refused(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The answer to what may not be done: a notice in the open page, else a page of its own."""
    if wants_fragment(request):
        response = render(request, "_notices.html", {"messages": [_Said(words_of(problem))]}, status=problem.status)
        response["HX-Retarget"], response["HX-Reswap"] = "#notices", "outerHTML"
        return response
    context = {"status": problem.status, "detail": words_of(problem)}
    return render(request, "refused.html", context, status=problem.status)


class _Said(str):
    """A notice that was not stored in the session."""

    tags = "error"


def say(request: HttpRequest, text: str, *, level: int = messages.SUCCESS) -> None:
    """A notice for the next page that this person sees."""
    messages.add_message(request, level, text)


def back(request: HttpRequest, otherwise: str) -> str:
    """Where a form wants to return to: a path of ours, else ``otherwise``."""
    wanted = request.POST.get("back", "")
    safe = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if safe else otherwise
