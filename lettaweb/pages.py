"""Django's part of the ASGI application: each request runs whole in one of a few threads.

Django's own handler goes back and forth between the event loop and a new thread for nearly every
middleware, and opens a database connection for every request. What never ends (streams, sockets) does not
come here, so a bounded number of threads with connections of their own serves the rest, at less than half
the cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix


class PagesApplication(ASGIHandler):
    """An ASGI application for HTTP requests whose answers end."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadPoolExecutor(settings.LETTAWEB_THREADS, thread_name_prefix="page")

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        answer = sync_to_async(self._answer, thread_sensitive=False, executor=self.threads)
        await self.send_response(await answer(scope, body), send)

    def _answer(self, scope: Mapping[str, Any], body: Any) -> HttpResponseBase:
        """The whole response. It is closed already: what hangs on its end belongs to this thread."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        try:
            request, refusal = self.create_request(scope, body)
            response: Any = refusal if request is None else self.get_response(request)
            response._handler_class = self.__class__
            whole = _whole(response)
            response.close()
            return whole
        finally:
            body.close()


def _whole(response: Any) -> HttpResponseBase:
    """A response without an iterator: files are read here."""
    if not response.streaming:
        return response  # type: ignore[no-any-return]
    found = HttpResponse(b"".join(response), status=response.status_code, headers=dict(response.items()))
    found.cookies = response.cookies
    return found
