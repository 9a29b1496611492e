"""Which route answers which request, for both vendors."""

from __future__ import annotations

import re

from tests.scripted import anthropic_batches, anthropic_routes, openai_batches, openai_files, openai_routes
from tests.scripted.exchange import Route
from tests.scripted.http import Request
from tests.scripted.refusals import Refused

ANTHROPIC: list[tuple[str, str, Route]] = [
    ("POST", r"/v1/messages", anthropic_routes.create_message),
    ("POST", r"/v1/messages/count_tokens", anthropic_routes.count_tokens),
    ("POST", r"/v1/messages/batches", anthropic_batches.create),
    ("GET", r"/v1/messages/batches", anthropic_batches.list_batches),
    ("GET", r"/v1/messages/batches/[^/]+", anthropic_batches.retrieve),
    ("GET", r"/v1/messages/batches/[^/]+/results", anthropic_batches.results),
    ("POST", r"/v1/messages/batches/[^/]+/cancel", anthropic_batches.cancel),
    ("DELETE", r"/v1/messages/batches/[^/]+", anthropic_batches.delete),
    ("GET", r"/v1/models", anthropic_routes.list_models),
    ("GET", r"/v1/models/[^/]+", anthropic_routes.retrieve_model),
]
OPENAI: list[tuple[str, str, Route]] = [
    ("POST", r"/v1/chat/completions", openai_routes.create_completion),
    ("POST", r"/v1/files", openai_files.upload),
    ("GET", r"/v1/files", openai_files.list_files),
    ("GET", r"/v1/files/[^/]+", openai_files.retrieve),
    ("GET", r"/v1/files/[^/]+/content", openai_files.content),
    ("DELETE", r"/v1/files/[^/]+", openai_files.delete),
    ("POST", r"/v1/batches", openai_batches.create),
    ("GET", r"/v1/batches", openai_batches.list_batches),
    ("GET", r"/v1/batches/[^/]+", openai_batches.retrieve),
    ("POST", r"/v1/batches/[^/]+/cancel", openai_batches.cancel),
    ("GET", r"/v1/models", openai_routes.list_models),
    ("GET", r"/v1/models/[^/]+", openai_routes.retrieve_model),
]
OPENAI_ONLY = ("/v1/chat/", "/v1/files", "/v1/batches")


def is_openai(request: Request) -> bool:
    """Which vendor a request means: by its path, else by the headers that only Anthropic's clients send."""
    if request.path.startswith(OPENAI_ONLY):
        return True
    if request.path.startswith("/v1/messages"):
        return False
    return not {"x-api-key", "anthropic-version"} & request.headers.keys()


def find_route(table: list[tuple[str, str, Route]], request: Request) -> Route:
    """The route of a request. Raises Refused (404) for none."""
    for method, pattern, route in table:
        if method == request.method and re.fullmatch(pattern, request.path):
            return route
    raise Refused(f"Unknown request URL: {request.method} {request.path}", status=404, kind="not_found_error")
