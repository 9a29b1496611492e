"""Which tools a list shows."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.http import QueryDict

from lettaweb.lib import ids
from lettaweb.lib.bodies import words
from lettaweb.lib.paging import flag
from lettaweb.lib.problems import Problem
from tools.models import Tool, ToolType

# Every type that clients may ask for; tools of most of them are never made here.
TYPES = frozenset(
    {
        *ToolType.values,
        "letta_multi_agent_core",
        "letta_sleeptime_core",
        "letta_voice_sleeptime_core",
        "letta_builtin",
        "letta_files_core",
        "external_langchain",
        "external_composio",
        "external_mcp",
    }
)


def tools_of(query: QueryDict) -> QuerySet[Tool]:
    """The tools that the query's filters let through. Raises a :class:`Problem` for a bad filter."""
    tools = Tool.objects.all()
    for name in words(query, "name")[:1]:
        tools = tools.filter(name=name)
    if names := words(query, "names"):
        tools = tools.filter(name__in=names)
    if wanted := words(query, "tool_ids"):
        tools = tools.filter(uuid__in=[ids.parse("tool", text) for text in wanted])
    for text in words(query, "search")[:1]:
        tools = tools.filter(name__icontains=text)
    return _of_types(tools, query)


def matching(tools: QuerySet[Tool], *, text: str, types: list[str], tags: list[str]) -> QuerySet[Tool]:
    """Tools whose name or description holds ``text``, of ``types`` and with any of ``tags`` (empty: all)."""
    if text:
        tools = tools.filter(Q(name__icontains=text) | Q(description__icontains=text))
    if types:
        tools = tools.filter(tool_type__in=_checked(types))
    if tags:
        wanted = set(tags)
        found = [pk for pk, have in tools.values_list("pk", "tags") if wanted & set(have or [])]
        tools = tools.filter(pk__in=found)
    return tools


def _of_types(tools: QuerySet[Tool], query: QueryDict) -> QuerySet[Tool]:
    if types := words(query, "tool_types"):
        tools = tools.filter(tool_type__in=_checked(types))
    if types := words(query, "exclude_tool_types"):
        tools = tools.exclude(tool_type__in=_checked(types))
    if flag(query, "return_only_letta_tools"):
        tools = tools.filter(tool_type__startswith="letta_")
    if flag(query, "exclude_letta_tools"):
        tools = tools.exclude(tool_type__startswith="letta_")
    return tools


def _checked(types: list[str]) -> list[str]:
    wrong = sorted(set(types) - TYPES)
    if wrong:
        raise Problem(400, f"Invalid tool type '{wrong[0][:80]}'. Must be one of {sorted(TYPES)}")
    return types
