"""Lists of tools: filters, pages, count, search, the built-in ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest import delete, get, names, new_tool, patch, post
from tests.tools.sources import tool_named
from tools.models import Tool

pytestmark = pytest.mark.django_db

LETTERS = "abcde"
CORE = {"send_message", "conversation_search"}
MEMORY = {"memory_insert", "memory_replace", "core_memory_append", "core_memory_replace"}


@pytest.fixture
def five() -> list[str]:
    """The ids of the tools tool_a … tool_e, oldest first, and no others."""
    Tool.objects.all().delete()
    return [new_tool(tool_named(f"tool_{letter}", f"Says {letter}."), tags=[letter])["id"] for letter in LETTERS]


PAGES: list[tuple[dict[str, Any], str]] = [
    ({}, "edcba"),
    ({"order": "asc"}, "abcde"),
    ({"limit": 2}, "ed"),
    ({"limit": 0}, ""),
    ({"after": "c"}, "ba"),
    ({"before": "c"}, "ed"),
    ({"after": "d", "before": "a"}, "cb"),
    ({"after": "b", "order": "asc"}, "cde"),
    ({"name": "tool_c"}, "c"),
    ({"name": "nothing"}, ""),
    ({"names": ["tool_a", "tool_e", "x"]}, "ea"),
    ({"search": "TOOL_B"}, "b"),
    ({"search": "%"}, ""),
    ({"tool_types": ["custom"]}, "edcba"),
    ({"tool_types": ["letta_core", "external_mcp"]}, ""),
    ({"exclude_tool_types": ["custom"]}, ""),
    ({"return_only_letta_tools": "true"}, ""),
]


@pytest.mark.parametrize(("params", "shown"), PAGES)
def test_it_lists(five: list[str], params: dict[str, Any], shown: str) -> None:
    for cursor in params.keys() & {"after", "before"}:
        params = {**params, cursor: five[LETTERS.index(params[cursor])]}
    assert names(get("tools/", **params)) == [f"tool_{letter}" for letter in shown]


def test_it_lists_by_id(five: list[str]) -> None:
    assert names(get("tools", tool_ids=five[1:3])) == ["tool_c", "tool_b"]
    get("tools/", tool_ids=["tool-1"], expect=422)


@pytest.mark.parametrize(
    ("params", "status"),
    [({"limit": "x"}, 422), ({"limit": -1}, 422), ({"order": "up"}, 422), ({"tool_types": "nope"}, 400)],
)
def test_it_refuses_bad_parameters(params: dict[str, Any], status: int) -> None:
    assert get("tools/", expect=status, **params)["detail"]


def test_it_counts_with_the_same_filters(five: list[str]) -> None:
    post("tools/add-base-tools")
    assert get("tools/count") == 5 + len(CORE | MEMORY)
    assert get("tools/count", exclude_letta_tools="true") == 5
    assert get("tools/count", name="tool_a") == 1


def test_it_adds_the_built_in_tools_once() -> None:
    Tool.objects.all().delete()
    first = post("tools/add-base-tools")
    assert set(names(first)) == CORE | MEMORY
    assert post("tools/add-base-tools/") == first
    kinds = {tool["name"]: tool["tool_type"] for tool in first}
    assert {kinds[name] for name in CORE} == {"letta_core"}
    assert {kinds[name] for name in MEMORY} == {"letta_memory_core"}
    assert names(get("tools/", name="send_message")) == ["send_message"]


def test_it_keeps_what_people_set_on_a_built_in_tool() -> None:
    tool = next(row for row in post("tools/add-base-tools") if row["name"] == "memory_insert")
    patch(f"tools/{tool['id']}", {"default_requires_approval": True, "return_char_limit": 7})
    patch(f"tools/{tool['id']}", {"source_code": tool_named("memory_insert")}, expect=400)
    again = next(row for row in post("tools/add-base-tools") if row["name"] == "memory_insert")
    assert (again["default_requires_approval"], again["return_char_limit"]) == (True, 7)


def test_it_brings_a_deleted_built_in_tool_back() -> None:
    tool = next(row for row in post("tools/add-base-tools") if row["name"] == "send_message")
    delete(f"tools/{tool['id']}")
    assert "send_message" in names(post("tools/add-base-tools"))


@pytest.mark.parametrize(
    ("body", "shown"),
    [({"query": "says c"}, "c"), ({"tags": ["a", "b"]}, "ba"), ({"query": "tool", "limit": 2}, "ed"), ({}, "edcba")],
)
def test_it_searches(five: list[str], body: dict[str, Any], shown: str) -> None:
    found = post("tools/search", body)
    assert [row["tool"]["name"] for row in found] == [f"tool_{letter}" for letter in shown]
    assert all(row["combined_score"] > 0 for row in found)
