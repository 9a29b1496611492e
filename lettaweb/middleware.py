"""The Content-Security-Policy header, with a nonce of its own for every page; paths that can name nothing; hosts."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

HEALTH = frozenset(f"/{prefix}/{name}" for prefix in ("v1", "latest") for name in ("health", "ready"))
Handler = Callable[[HttpRequest], HttpResponseBase]

_POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def plain_paths(get_response: Handler) -> Handler:
    """Answers 404 for a path with a NUL, before anybody looks for it in a database that takes none."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if "\x00" in request.path_info:
            raise Http404
        return get_response(request)

    return middleware


class Common(CommonMiddleware):
    """Django's, which refuses host names that it was not told, but for machines that ask for health by an address."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path_info.rstrip("/") in HEALTH else super().process_request(request)


def content_security_policy(get_response: Handler) -> Handler:
    """Sets ``request.csp_nonce`` before the view and the header after it (a view's own header wins)."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        nonce = secrets.token_urlsafe(16)
        request.csp_nonce = nonce  # type: ignore[attr-defined]
        response = get_response(request)
        if "Content-Security-Policy" not in response and _is_page(response):
            response["Content-Security-Policy"] = _POLICY.format(nonce=nonce)
        return response

    return middleware


def csp_nonce(request: HttpRequest) -> dict[str, Any]:
    """A template context processor: ``{{ csp_nonce }}``."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}


def _is_page(response: HttpResponseBase) -> bool:
    return response.get("Content-Type", "").startswith("text/html")
