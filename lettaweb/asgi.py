"""The ASGI application: raw message routes ahead of Django, websockets, lifespan, Django for the rest."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lettaweb.settings")

import django

django.setup(set_prefix=False)

from channels.routing import URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from agents.policies.guard import own_origin, visit_of_scope  # noqa: E402
from agents.routing import websocket_urlpatterns  # noqa: E402
from agents.views import stream  # noqa: E402
from agents.views.replies import send_problem  # noqa: E402
from lettaweb import checks, lifespan  # noqa: E402
from lettaweb.errors import problem_of, report  # noqa: E402
from lettaweb.pages import PagesApplication  # noqa: E402
from lettaweb.sockets import guarded, refuse  # noqa: E402

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

checks.refuse_unsafe_start()
pages: App = PagesApplication()


def _sockets() -> App:
    router: App = URLRouter(websocket_urlpatterns)
    known = [route.pattern for route in websocket_urlpatterns]

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        # The router raises for an unknown path; that is a client's mistake, not ours.
        if any(pattern.match(scope["path"].lstrip("/")) for pattern in known):
            await router(scope, receive, send)
        else:
            await refuse(receive, send, 4404)

    return guarded(application)


def _with_cors(scope: Scope, send: Send) -> Send:
    """Adds the headers that let a page of an allowed origin read a raw route's answer."""
    visit = visit_of_scope(scope)
    if not visit.origin or own_origin(visit) or visit.origin not in settings.LETTAWEB_CORS_ORIGINS:
        return send
    allowed = [
        (b"access-control-allow-origin", visit.origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"origin"),
    ]

    async def sending(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *allowed]}
        await send(message)

    return sending


async def _answered(scope: Scope, receive: Receive, send: Send) -> None:
    """A raw route, whose unexpected errors become the same answers as a view's."""
    begun = False

    async def sending(message: Mapping[str, Any]) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await stream.application(scope, receive, sending)
    except Exception as error:
        problem = problem_of(error)
        report(error, problem, path=scope["path"])
        if begun:
            raise
        await send_problem(send, problem)


sockets = _sockets()


async def application(scope: Any, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        if stream.matches(scope):
            await _answered(scope, receive, _with_cors(scope, send))
        else:
            await pages(scope, receive, send)
    elif scope["type"] == "websocket":
        await sockets(scope, receive, send)
    elif scope["type"] == "lifespan":
        await lifespan.application(receive, send)
