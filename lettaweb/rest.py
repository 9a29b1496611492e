"""How DRF reads, answers and lets in: the settings name these classes, nobody imports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from agents.policies.guard import Caller, admit, too_large, unauthorized, visit_of_meta
from agents.policies.rights import BUILD, VIEW, can
from lettaweb.lib.json import BadJson, dumps, loads


class StrictJSONParser(BaseParser):
    """JSON and nothing that only looks like it; at most LETTAWEB_MAX_BODY_MB."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        data = stream.read(settings.LETTAWEB_MAX_BODY + 1)
        if len(data) > settings.LETTAWEB_MAX_BODY:
            raise too_large()
        try:
            return loads(data) if data.strip() else {}
        except BadJson as error:
            raise ParseError(f"JSON parse error: {error}") from None


class WireJSONRenderer(BaseRenderer):
    """Compact JSON that every parser reads."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        response = (renderer_context or {}).get("response")
        if data is None and (response is None or response.status_code == 204):
            return b""
        return dumps(data).encode()


class AlwaysJSON(BaseContentNegotiation):
    """The API answers JSON, whatever a client says it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        wanted = (request.content_type or "application/json").partition(";")[0].strip().lower()
        fitting = [parser for parser in parsers if parser.media_type == wanted]
        if not fitting and wanted.endswith("+json"):
            fitting = [parser for parser in parsers if parser.media_type == "application/json"]
        return fitting[0] if fitting else None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class GuardAuthentication(BaseAuthentication):
    """The guard of the raw routes, for views. Cookies never authenticate here."""

    def authenticate(self, request: Request) -> tuple[Any, Caller]:
        caller = admit(visit_of_meta(request.META))
        return caller.user, caller

    def authenticate_header(self, request: Request) -> str:
        return unauthorized().headers["WWW-Authenticate"]


class HasRight(BasePermission):
    """A view says which right its writing methods need: ``right = "agents.send_message"``, or by method
    ``rights = {"POST": …}``. Reading needs ``agents.view_agent``, writing by default ``agents.change_agent``."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return can(request.user, needed(request.method or "GET", view))


def needed(method: str, view: Any) -> str:
    by_method: Mapping[str, str] = getattr(view, "rights", {})
    if method in by_method:
        return by_method[method]
    if method in SAFE_METHODS:
        return VIEW
    right: str = getattr(view, "right", BUILD)
    return right
