"""The rows of built-in tools: made once, brought up to date, never set back."""

from __future__ import annotations

import pytest

from agents.memory.builtins import BUILTINS
from agents.memory.register import ensure_base_tools
from tools.models import Tool, ToolType
from tools.registry import is_builtin

pytestmark = pytest.mark.django_db


def test_it_makes_a_row_for_each() -> None:
    made = ensure_base_tools()
    assert {tool.name for tool in made} == set(BUILTINS)
    assert {tool.name for tool in made if tool.tool_type == ToolType.LETTA_MEMORY_CORE} == {
        "memory_insert", "memory_replace", "core_memory_append", "core_memory_replace",
    }  # fmt: skip
    assert all(tool.json_schema["parameters"] and tool.description and not tool.source_code for tool in made)
    assert all(map(is_builtin, BUILTINS))


def test_it_keeps_what_people_set() -> None:
    ensure_base_tools()
    Tool.objects.filter(name="send_message").update(
        default_requires_approval=True, return_char_limit=7, risk="high", json_schema={}, description="stale"
    )
    before = {tool.name: tool.pk for tool in Tool.objects.all()}
    ensure_base_tools()
    tool = Tool.objects.get(name="send_message")
    assert (tool.default_requires_approval, tool.return_char_limit, tool.risk) == (True, 7, "high")
    assert tool.json_schema["name"] == "send_message"
    assert {row.name: row.pk for row in Tool.objects.all()} == before
