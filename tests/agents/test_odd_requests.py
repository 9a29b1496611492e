"""Whatever a client sends, the answer is never a 500, and what was stored can still be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.serializers import Serializer

from agents.serializers.agents import ApprovalToggle, CreateAgent, ResetMessages, UpdateAgent
from agents.serializers.blocks import BlockUpdate, CreateBlock
from tests.rest import CLIENT, get, new_agent, new_tool
from tests.tools.sources import SECRET_CODE
from tools.serializers import SchemaRequest, ToolCreate, ToolSearch, ToolUpdate

pytestmark = pytest.mark.django_db

VALUES: list[Any] = [[None], [{}], {"a": [1]}, 7, -1, True, "\x00\ud800", "x" * 300, 10**30]
BODIES: list[tuple[str, str, type[Serializer[Any]], dict[str, Any]]] = [
    ("POST", "agents/", CreateAgent, {"model": "demo/demo", "include_base_tools": False}),
    ("PATCH", "agents/{agent}", UpdateAgent, {}),
    ("PATCH", "agents/{agent}/reset-messages", ResetMessages, {}),
    ("PATCH", "agents/{agent}/tools/approval/x", ApprovalToggle, {}),
    ("POST", "blocks/", CreateBlock, {"label": "l", "value": "v"}),
    ("PATCH", "blocks/{block}", BlockUpdate, {}),
    ("PUT", "tools/", ToolCreate, {"source_code": SECRET_CODE}),
    ("PATCH", "tools/{tool}", ToolUpdate, {}),
    ("POST", "tools/search", ToolSearch, {}),
    ("POST", "tools/generate-schema", SchemaRequest, {"code": SECRET_CODE}),
]


@pytest.mark.parametrize(("method", "path", "serializer", "body"), BODIES)
def test_it_survives_odd_bodies(
    method: str, path: str, serializer: type[Serializer[Any]], body: dict[str, Any]
) -> None:
    tool = new_tool(SECRET_CODE)["id"]
    agent = new_agent(tool_ids=[tool], memory_blocks=[{"label": "human", "value": ""}])
    where = "/v1/" + path.format(agent=agent["id"], tool=tool, block=agent["blocks"][0]["id"])
    for name in serializer().fields:
        for value in VALUES:
            data = json.dumps({**body, name: value})
            answer = CLIENT.generic(method, where, data, content_type="application/json")
            assert answer.status_code in (200, 400, 404, 409, 422), (name, value, answer.content)
    for rows in ("agents/?show_hidden_agents=1", "tools/", "blocks/?show_hidden_blocks=1"):
        assert get(rows)
    assert get(f"agents/{agent['id']}/context")
    assert get(f"agents/{agent['id']}/export")


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'"x"', b"{", b"\xff", b'{"name": NaN}', b"[" * 5000])
@pytest.mark.parametrize(("method", "path"), [("POST", "agents/"), ("PUT", "tools/"), ("POST", "blocks/")])
def test_it_survives_bodies_that_are_no_objects(method: str, path: str, data: bytes) -> None:
    answer = CLIENT.generic(method, f"/v1/{path}", data, content_type="application/json")  # type: ignore[arg-type]
    assert answer.status_code in (400, 422), answer.content
    assert isinstance(answer.json()["detail"], str)


LISTS = {
    "agents/": ("name", "tags", "query_text", "after", "before", "identity_id", "last_stop_reason", "order_by"),
    "tools/": ("name", "names", "tool_ids", "search", "tool_types", "after", "return_only_letta_tools"),
    "blocks/": ("label", "name", "tags", "value_search", "after", "connected_to_agents_count_eq", "templates_only"),
    "tags/": ("query_text", "after", "before", "name"),
    "agents/count": ("name", "tags"),
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("value", ["", "\x00", "a\x00b", "%", "_", "'\"\\", "x" * 3000, "ü😀", "9" * 400, "agent-x"])
def test_it_survives_odd_queries(path: str, value: str) -> None:
    new_agent(tags=["t"], memory_blocks=[{"label": "human", "value": ""}])
    for name in LISTS[path]:
        answer = CLIENT.get(f"/v1/{path}", {name: value})
        assert answer.status_code in (200, 400, 422), (name, answer.content)
