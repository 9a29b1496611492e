"""Who may open a websocket: our own pages with a session, or a program with a token, in every mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from channels.auth import AuthMiddleware
from channels.sessions import CookieMiddleware, SessionMiddleware

from agents.policies.guard import Visit, check_host, check_place, identify_token, own_origin, visit_of_scope
from agents.policies.rights import VIEW, can
from lettaweb.lib.db import in_db_read
from lettaweb.lib.problems import Problem

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

NO_LOGIN = 4401
NOT_ALLOWED = 4403


def guarded(inner: App) -> App:
    """``inner`` behind the check; ``scope["user"]`` is set when it is called, else the socket closes
    with 4401 (nobody) or 4403 (somebody who may not)."""
    with_session = CookieMiddleware(SessionMiddleware(AuthMiddleware(_with_session(inner))))

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        visit = visit_of_scope(scope)
        try:
            if visit.authorization or visit.bare_password:
                check_place(visit)
                caller = await in_db_read(identify_token, visit)
                await _enter(inner, {**scope, "user": caller.user}, receive, send)
            else:
                _check_page(visit)
                await with_session(scope, receive, send)
        except Problem as problem:
            await refuse(receive, send, NO_LOGIN if problem.status == 401 else NOT_ALLOWED)

    return application


def _check_page(visit: Visit) -> None:
    # A cookie travels with requests that any page makes: only the Origin tells them apart.
    check_host(visit)
    if not visit.origin or not own_origin(visit):
        raise Problem(403 if visit.origin else 401, "A socket needs a token, or a session and our own Origin.")


def _with_session(inner: App) -> App:
    async def application(scope: Any, receive: Receive, send: Send) -> None:
        user = await in_db_read(_loaded, scope["user"])
        await _enter(inner, {**scope, "user": user}, receive, send)

    return application


def _loaded(lazy: Any) -> Any:
    return getattr(lazy, "_wrapped", lazy)


async def _enter(inner: App, scope: Any, receive: Receive, send: Send) -> None:
    user = scope["user"]
    if not user.is_authenticated or not user.is_active:
        await refuse(receive, send, NO_LOGIN)
    elif not await in_db_read(can, user, VIEW):
        await refuse(receive, send, NOT_ALLOWED)
    else:
        await inner(scope, receive, send)


async def refuse(receive: Receive, send: Send, code: int) -> None:
    """Close with ``code``. A browser learns the code only when the socket was accepted first."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": code})
