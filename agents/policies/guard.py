"""Who may come in: the one check of Host, Origin, token and rate for API views, raw routes and sockets.

Open mode takes any or no token, but only when the request names this machine (a page of another site can
send its own name only, or an Origin that is not ours). Token mode wants a bearer token. Sockets want a
token or a session in both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.http.request import split_domain_port, validate_host
from django.utils import timezone

from agents.policies import throttle, tokens
from agents.policies.groups import SYSTEM_USER
from agents.policies.known import known, recall
from lettaweb.lib.db import in_db_read
from lettaweb.lib.environment import is_loopback
from lettaweb.lib.problems import Problem

UNAUTHORIZED = "Unauthorized"
_OPEN = " open"  # stands for everybody in open mode; no token begins with a blank


@dataclass(frozen=True, slots=True)
class Visit:
    """What the guard looks at. ``client`` and ``server`` are addresses, "" where unknown."""

    host: str
    origin: str = ""
    authorization: str = ""
    bare_password: str = ""
    client: str = ""
    server: str = ""
    secure: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who came in. ``via`` is open or token; ``token`` is the stored token's key, "" in open mode; ``until``
    is its end, None when it has none."""

    user: User
    via: str
    token: str = ""
    until: datetime | None = None


async def guard(scope: Mapping[str, Any], body: bytes = b"") -> Caller:
    """The caller of a raw ASGI request; a :class:`Problem` 400, 401, 403, 413 or 429 when it may not come in."""
    if len(body) > settings.LETTAWEB_MAX_BODY:
        raise too_large()
    visit = visit_of_scope(scope)
    check_place(visit)
    remembered = recall(_key(visit))
    return await in_db_read(identify, visit) if remembered is None else _counted(_in_time(remembered))


def admit(visit: Visit) -> Caller:
    """As :func:`guard`, for synchronous callers that have no body to check."""
    check_place(visit)
    return identify(visit)


def check_place(visit: Visit) -> None:
    """Host and Origin; no database."""
    check_host(visit)
    if visit.origin and not (own_origin(visit) or visit.origin in settings.LETTAWEB_CORS_ORIGINS):
        raise Problem(403, "Requests from this origin are not allowed.")


def check_host(visit: Visit) -> None:
    name, _port = split_domain_port(visit.host)
    if settings.LETTAWEB_AUTH == "open":
        if name not in settings.LETTAWEB_OPEN_HOSTS:
            raise Problem(403, "Without tokens the API answers to loopback names only; set LETTAWEB_AUTH=token.")
        if _outward(visit.server):
            raise Problem(403, "Without tokens the API answers on loopback addresses only; set LETTAWEB_AUTH=token.")
    elif not name or not validate_host(name, settings.ALLOWED_HOSTS):
        raise Problem(400, "Invalid Host header.")


def own_origin(visit: Visit) -> bool:
    """Whether the Origin names the host that the request went to, or one of our other names."""
    if visit.origin in settings.LETTAWEB_ORIGINS:
        return True
    return urlsplit(visit.origin).netloc.lower() == visit.host.lower() != ""


def identify(visit: Visit) -> Caller:
    """The user behind the token (token mode) or the system user (open mode). Reads the database."""
    return _counted(known(_OPEN, _system) if settings.LETTAWEB_AUTH == "open" else identify_token(visit))


def _key(visit: Visit) -> str:
    """Under which the caller is remembered."""
    return _OPEN if settings.LETTAWEB_AUTH == "open" else tokens.sent(visit.authorization, visit.bare_password)


def _counted(caller: Caller) -> Caller:
    throttle.count(caller.token or caller.user.username)
    return caller


def identify_token(visit: Visit) -> Caller:
    """The user of the token that was sent, in every mode; a :class:`Problem` 401 without a good one."""
    given = tokens.sent(visit.authorization, visit.bare_password)
    if not given:
        raise unauthorized()
    return _in_time(known(given, lambda: _of_token(given)))


def _in_time(caller: Caller) -> Caller:
    if caller.until is not None and caller.until <= timezone.now():
        raise unauthorized()
    return caller


def _system() -> Caller:
    return Caller(User.objects.get(username=SYSTEM_USER), "open")


def _of_token(given: str) -> Caller:
    found = tokens.find(given)
    if found is None:
        raise unauthorized()
    return Caller(found.user, "token", found.token_key, found.expiry)


def unauthorized() -> Problem:
    return Problem(401, UNAUTHORIZED, headers={"WWW-Authenticate": 'Bearer realm="lettaweb"'})


def too_large() -> Problem:
    return Problem(413, f"The body is larger than {settings.LETTAWEB_MAX_BODY_MB} MB.")


async def read_body(receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> bytes:
    """The whole body of a raw request; a :class:`Problem` 413 above the cap, 499 when the client left."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(499, "The client closed the connection.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > settings.LETTAWEB_MAX_BODY:
            raise too_large()
        if not message.get("more_body"):
            return b"".join(parts)


def visit_of_scope(scope: Mapping[str, Any]) -> Visit:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    return Visit(
        host=headers.get(b"host", ""),
        origin=headers.get(b"origin", ""),
        authorization=headers.get(b"authorization", ""),
        bare_password=headers.get(b"x-bare-password", ""),
        client=_address(scope.get("client")),
        server=_address(scope.get("server")),
        secure=scope.get("scheme") in ("https", "wss"),
    )


def visit_of_meta(meta: Mapping[str, Any]) -> Visit:
    """The same from Django's ``request.META``."""
    return Visit(
        host=str(meta.get("HTTP_HOST") or meta.get("SERVER_NAME", "")),
        origin=str(meta.get("HTTP_ORIGIN", "")),
        authorization=str(meta.get("HTTP_AUTHORIZATION", "")),
        bare_password=str(meta.get("HTTP_X_BARE_PASSWORD", "")),
        client=str(meta.get("REMOTE_ADDR") or ""),
        server=str(meta.get("SERVER_NAME") or ""),
        secure=meta.get("wsgi.url_scheme") == "https",
    )


def _address(pair: Any) -> str:
    return str(pair[0]) if pair else ""


def _outward(address: str) -> bool:
    """Whether ``address`` is an IP address that other machines can reach."""
    bare = address.strip("[]")
    looks_like_ip = bool(bare) and (":" in bare or bare.replace(".", "").isdigit())
    return looks_like_ip and not is_loopback(bare)
