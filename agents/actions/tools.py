"""The tools of an agent: attached, detached, put under approval or not, tried out.

What waits already is never touched: a pending call stays decidable whatever happens to its tool or rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from agents.actions import rules
from agents.models import Agent, AgentTool
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.actions import ensure_builtins, hold_tools
from tools.models import Tool


def locked_agent(agent: Agent) -> Agent:
    """The agent's row, locked until the transaction ends; a :class:`Problem` 404 when it is gone."""
    found = Agent.objects.select_for_update(no_key=True).filter(pk=agent.pk).first()
    if found is None:
        raise Problem(404, f"Agent with ID {agent.wire_id} not found")
    return found


def attach_tool(agent: Agent, tool: Tool) -> Agent:
    """Give ``agent`` a tool; again is fine. A tool that asks by default asks for this agent too."""
    with transaction.atomic():
        hold_tools([tool])
        agent = locked_agent(agent)
        if add_tools(agent, [tool]):
            agent.save(update_fields=["tool_rules", "updated_at"])
    return agent


def detach_tool(agent: Agent, tool: Tool) -> Agent:
    """Take a tool and its rules from ``agent``; fine when it does not have it."""
    with transaction.atomic():
        agent = locked_agent(agent)
        if AgentTool.objects.filter(agent=agent, tool=tool).delete()[0]:
            agent.tool_rules = rules.without_tool(agent.tool_rules, tool.name)
            agent.save(update_fields=["tool_rules", "updated_at"])
    return agent


def set_approval(agent: Agent, name: str, required: bool) -> Agent:
    """Whether calls of the tool ``name`` ask a person first; the agent need not have that tool yet."""
    with transaction.atomic():
        agent = locked_agent(agent)
        agent.tool_rules = rules.with_approval(agent.tool_rules, [name], required=required)
        agent.save(update_fields=["tool_rules", "updated_at"])
    return agent


def add_tools(agent: Agent, tools: Iterable[Tool]) -> bool:
    """Link tools to ``agent`` and add their approval rules to it, unsaved; whether any was new.

    Call it inside a transaction that holds the tools and the agent.
    """
    have = set(AgentTool.objects.filter(agent=agent).values_list("tool_id", flat=True))
    new = [tool for tool in dict.fromkeys(tools) if tool.pk not in have]
    AgentTool.objects.bulk_create([AgentTool(agent=agent, tool=tool) for tool in new])
    asking = [tool.name for tool in new if tool.default_requires_approval]
    agent.tool_rules = rules.with_approval(agent.tool_rules, asking)
    return bool(new)


def set_tools(agent: Agent, tools: Sequence[Tool]) -> None:
    """Make ``tools`` the agent's only ones, as :func:`add_tools`; the others go with their rules."""
    for link in AgentTool.objects.filter(agent=agent).exclude(tool__in=tools).select_related("tool"):
        agent.tool_rules = rules.without_tool(agent.tool_rules, link.tool.name)
        link.delete()
    add_tools(agent, tools)


def tools_by_id(wires: Iterable[str]) -> list[Tool]:
    """The tools of wire ids, in their order; a :class:`Problem` 400 names those that do not exist."""
    wanted = {ids.parse("tool", wire): wire for wire in wires}
    found = {tool.uuid: tool for tool in Tool.objects.filter(uuid__in=wanted)}
    if missing := [wire for uuid, wire in wanted.items() if uuid not in found]:
        raise Problem(400, f"Tools not found by id: {', '.join(missing)}")
    return [found[uuid] for uuid in wanted]


def tools_by_name(names: Iterable[str]) -> list[Tool]:
    """The tools of these names, in their order; built-in ones are made where their row is missing."""
    wanted = list(dict.fromkeys(names))
    found = {tool.name: tool for tool in Tool.objects.filter(name__in=wanted)}
    if set(wanted) - found.keys():
        found = {tool.name: tool for tool in ensure_builtins()} | found
    if missing := [name for name in wanted if name not in found]:
        raise Problem(400, f"Tools not found by name: {', '.join(missing)}")
    return [found[name] for name in wanted]


# --- what follows when a tool ends or is renamed (registered with tools.registry at start) --------


def forget_tool(tool: Tool) -> None:
    """The tool is about to go: its agents lose its rules (and the link, by cascade)."""
    for agent in _agents_with(tool):
        agent.tool_rules = rules.without_tool(agent.tool_rules, tool.name)
        agent.save(update_fields=["tool_rules", "updated_at"])


def follow_rename(tool: Tool, old_name: str) -> None:
    """The tool has a new name: the rules of its agents follow."""
    for agent in _agents_with(tool):
        agent.tool_rules = rules.renamed(agent.tool_rules, old_name, tool.name)
        agent.save(update_fields=["tool_rules", "updated_at"])


def _agents_with(tool: Tool) -> list[Agent]:
    rows = Agent.objects.filter(agenttool__tool=tool).exclude(tool_rules=[])
    return list(rows.select_for_update(no_key=True, of=("self",)).order_by("pk"))
