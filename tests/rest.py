"""Calls of the REST API in tests: one line each, with the answer's JSON."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from rest_framework.test import APIClient

CLIENT = APIClient()  # one for all: each new one reads every static file again
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def call(method: str, path: str, body: Any = None, *, expect: int = 200, **params: Any) -> Any:
    """The JSON of the answer to ``method /v1/path``; the test fails unless its status is ``expect``."""
    where = f"/v1/{path}?{_query(params)}" if params else f"/v1/{path}"
    data = "" if body is None else json.dumps(body)
    response = CLIENT.generic(method, where, data, content_type="application/json")
    assert response.status_code == expect, (response.status_code, response.content)
    return response.json() if response.content else None


def get(path: str, *, expect: int = 200, **params: Any) -> Any:
    return call("GET", path, expect=expect, **params)


def post(path: str, body: Any = None, *, expect: int = 200, **params: Any) -> Any:
    return call("POST", path, body, expect=expect, **params)


def put(path: str, body: Any = None, *, expect: int = 200, **params: Any) -> Any:
    return call("PUT", path, body, expect=expect, **params)


def patch(path: str, body: Any = None, *, expect: int = 200, **params: Any) -> Any:
    return call("PATCH", path, body, expect=expect, **params)


def delete(path: str, *, expect: int = 200) -> Any:
    return call("DELETE", path, expect=expect)


def new_agent(*, expect: int = 200, **fields: Any) -> Any:
    """An agent made through the API, without built-in tools unless asked for."""
    return post("agents/", {"model": "demo/demo", "include_base_tools": False, **fields}, expect=expect)


def new_tool(source: str, **fields: Any) -> Any:
    """A tool made through the API."""
    return put("tools/", {"source_code": source, **fields})


def new_block(label: str = "human", value: str = "", **fields: Any) -> Any:
    """A memory block made through the API."""
    return post("blocks/", {"label": label, "value": value, **fields})


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


def _query(params: dict[str, Any]) -> str:
    said = {key: str(value).lower() if isinstance(value, bool) else value for key, value in params.items()}
    return urlencode(said, doseq=True)
