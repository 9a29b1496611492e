"""The API's own description: valid, complete, each path once; a page that shows it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from drf_spectacular.validation import validate_schema

import agents.urls
import tools.urls
from agents.views.stream import matches
from lettaweb.openapi import RAW
from tests.rest import CLIENT, get

pytestmark = pytest.mark.django_db


def test_it_describes_every_path_once() -> None:
    schema = get("openapi.json")
    validate_schema(schema)  # type: ignore[no-untyped-call]
    paths = schema["paths"]
    known = {path.rstrip("/") for path in paths}
    assert {"/v1/agents", "/v1/agents/{agent_id}", "/v1/tools", "/v1/blocks", "/v1/tags"} <= known
    assert not any(path.startswith(("/latest", "/api", "/admin")) for path in paths)
    assert {"/v1/messages/{message_id}", *(path.rstrip("/") for path in RAW)} <= known
    assert all(matches({"method": "POST", "path": path}) for path in RAW)
    assert {status for methods in paths.values() for way in methods.values() for status in way["responses"]} == {"200"}
    names = [method["operationId"] for methods in paths.values() for method in methods.values()]
    assert len(names) == len(set(names))


def test_it_names_the_bodies() -> None:
    schema = get("openapi.json")
    post = next(methods["post"] for path, methods in schema["paths"].items() if path.rstrip("/") == "/v1/agents")
    assert "requestBody" in post
    assert {"model", "tool_ids", "memory_blocks"} <= schema["components"]["schemas"]["CreateAgent"]["properties"].keys()


def test_every_view_says_what_it_reads() -> None:
    views: list[Any] = [route.callback.cls for urls in (agents.urls, tools.urls) for route in urls.urlpatterns]
    methods = [(view, name) for view in views for name in ("post", "put", "patch") if hasattr(view, name)]
    reading = [(view, name) for view, name in methods if "bodies.read(" in inspect.getsource(getattr(view, name))]
    assert len(reading) > 15
    assert [(view, name) for view, name in reading if name.upper() not in getattr(view, "takes", {})] == []


def test_it_has_a_page() -> None:
    page = CLIENT.get("/v1/docs")
    assert page.status_code == 200
    assert "swagger-ui" in page.content.decode()
    script = CLIENT.get("/v1/docs/?script")
    assert "/v1/openapi.json" in script.content.decode()
