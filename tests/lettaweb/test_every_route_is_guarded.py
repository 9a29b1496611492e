"""No route of the API lets anybody in without a token, and none lets a viewer write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from agents.policies import tokens

pytestmark = pytest.mark.django_db

OPEN = re.compile(r"^/(v1|latest)/(health|ready|docs|openapi)")  # they hold nothing of the installation
SAMPLE = "00000000-0000-4000-8000-000000000000"
PREFIXES = {"agent": "agent", "block": "block", "tool": "tool", "run": "run", "step": "step",
            "message": "message", "conversation": "conv", "batch": "job", "job": "job", "call": "call"}  # fmt: skip


def routes(patterns: Any = None, before: str = "") -> Iterator[str]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        text = before + re.sub(r"^\^|\$$|\\Z", "", str(pattern.pattern)).replace("/?", "/")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, text)
        elif isinstance(pattern, URLPattern):
            yield "/" + filled(text)


def filled(text: str) -> str:
    def sample(match: re.Match[str]) -> str:
        name = match[1].removesuffix("_id")
        return f"{PREFIXES[name]}-{SAMPLE}" if name in PREFIXES else "x"

    text = re.sub(r"\(\?![^)]*\)", "", text)
    text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", sample, text)
    return re.sub(r"<(?:\w+:)?(\w+)>", sample, text).replace("\\", "")


def api() -> list[str]:
    return sorted({path for path in routes() if path.startswith(("/v1/", "/api/")) and not OPEN.match(path)})


def ask(client: Client, method: str, path: str, **headers: Any) -> int:
    body = {} if method in ("get", "head") else {"data": "{}", "content_type": "application/json"}
    return int(getattr(client, method)(path, **body, **headers).status_code)


def test_it_knows_the_routes() -> None:
    assert len(api()) > 10


def test_it_wants_a_token_everywhere(client: Client, settings: Any) -> None:
    settings.LETTAWEB_AUTH = "token"
    wrong = {"HTTP_AUTHORIZATION": "Bearer lw_" + "a" * 64, "HTTP_USER_ID": "user-1"}
    let_in = [
        (method, path)
        for path in api()
        for method in ("get", "post", "put", "patch", "delete")
        for headers in ({}, wrong)
        if ask(client, method, path, **headers) not in (401, 404)
    ]
    assert let_in == []
    assert [path for path in api() if ask(client, "get", path) != 401] == []


def test_it_lets_no_viewer_write(client: Client, settings: Any) -> None:
    settings.LETTAWEB_AUTH = "token"
    viewer = User.objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name="viewer"))
    headers = {"HTTP_AUTHORIZATION": f"Bearer {tokens.make(viewer)}"}
    reading = re.compile(r"/(search|generate-schema|context)/?$")
    allowed = [
        (method, path, status)
        for path in api()
        if not reading.search(path)
        for method in ("post", "put", "patch", "delete")
        if (status := ask(client, method, path, **headers)) not in (403, 404, 405)
    ]
    assert allowed == []
