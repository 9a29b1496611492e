"""Agents made and changed. One transaction makes an agent with all that belongs to it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from agents.actions import rules
from agents.actions.base_tools import base_tool_names
from agents.actions.blocks import attach_blocks, create_block, set_blocks
from agents.actions.boot import begin
from agents.actions.llm import Model, changed_model, chosen_model, embedding_columns
from agents.actions.names import random_name
from agents.actions.tools import add_tools, locked_agent, set_tools, tools_by_id, tools_by_name
from agents.actions.window import set_message_ids
from agents.memory.defaults import default_system
from agents.memory.secrets import set_secrets
from agents.models import Agent, AgentTag, Block
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools.actions import hold_tools
from tools.models import Tool

Given = Mapping[str, Any]

DEFAULT_TYPE = "letta_v1_agent"
COLUMNS = (
    "name",
    "description",
    "system",
    "metadata",
    "compaction_settings",
    "message_buffer_autoclear",
    "timezone",
    "hidden",
    "project_id",
    "template_id",
    "base_template_id",
    "identity_ids",
    "last_run_completion",
    "last_run_duration_ms",
    "last_stop_reason",
)
KEPT = (
    "enable_sleeptime",
    "max_files_open",
    "per_file_view_window_char_limit",
    "deployment_id",
    "entity_id",
    "memory_variables",
)
"""Fields that are accepted and shown again, and that nothing here acts on."""


def create_agent(given: Given) -> Agent:
    """Make an agent with its tools, blocks, tags, secrets and first messages.

    ``given`` holds the fields of CreateAgent without nulls. Raises a :class:`Problem`: 400 and 404 for
    the model, 400 for tools, 404 for blocks, 409 for labels, 422 for rules and values.
    """
    kind = given.get("agent_type", DEFAULT_TYPE)
    model = chosen_model(given)
    with transaction.atomic():
        tools = _tools_for(kind, given)
        hold_tools(tools)
        agent = Agent(agent_type=kind, **_columns(given), **model.columns, **embedding_columns(given))
        agent.name = agent.name or random_name()
        agent.system = agent.system or default_system(kind)
        wanted = given.get("include_base_tool_rules")
        names = [tool.name for tool in tools]
        agent.tool_rules = rules.first_rules(kind, names, given.get("tool_rules", ()), wanted)
        agent.save(force_insert=True)
        if add_tools(agent, tools):
            agent.save(update_fields=["tool_rules"])
        attach_blocks(agent, [*_new_blocks(agent, given), *blocks_by_id(given.get("block_ids", ()))])
        _set_belongings(agent, given)
        begin(agent, given.get("initial_message_sequence"))
    return agent


def update_agent(agent: Agent, given: Given) -> Agent:
    """Change an agent. ``given`` holds fields of UpdateAgent without nulls; lists replace what was there.

    Raises the same problems as :func:`create_agent`.
    """
    with transaction.atomic():
        tools = tools_by_id(given.get("tool_ids", ()))
        hold_tools(tools)
        agent = locked_agent(agent)
        for name, value in _changed_columns(agent, given).items():
            setattr(agent, name, value)
        if "tool_ids" in given:
            set_tools(agent, tools)
        if "tool_rules" in given:
            agent.tool_rules = rules.checked_rules(given["tool_rules"])
        agent.save()
        if "block_ids" in given:
            set_blocks(agent, blocks_by_id(given["block_ids"]))
        _set_belongings(agent, given)
        if "message_ids" in given:
            set_message_ids(agent, given["message_ids"])
    return agent


def blocks_by_id(wires: Sequence[str]) -> list[Block]:
    """The blocks of wire ids, in their order; a :class:`Problem` 404 names those that do not exist."""
    wanted = {ids.parse("block", wire): wire for wire in wires}
    found = {block.uuid: block for block in Block.objects.filter(uuid__in=wanted)}
    if missing := [wire for uuid, wire in wanted.items() if uuid not in found]:
        raise Problem(404, f"Blocks not found by id: {', '.join(missing)}")
    return [found[uuid] for uuid in wanted]


def _tools_for(kind: str, given: Given) -> list[Tool]:
    base = base_tool_names(kind) if given.get("include_base_tools", True) else ()
    tools = tools_by_name([*base, *given.get("tools", ())])
    return list(dict.fromkeys([*tools, *tools_by_id(given.get("tool_ids", ()))]))


def without_nulls(values: Given) -> dict[str, Any]:
    """``values`` as every action takes them: a null says nothing."""
    return {name: value for name, value in values.items() if value is not None}


def _new_blocks(agent: Agent, given: Given) -> list[Block]:
    return [create_block(without_nulls(block), born_with=agent) for block in given.get("memory_blocks", ())]


def _columns(given: Given) -> dict[str, Any]:
    columns = {name: given[name] for name in COLUMNS if name in given}
    return {**columns, "extra": {name: given[name] for name in KEPT if name in given}}


def _changed_columns(agent: Agent, given: Given) -> dict[str, Any]:
    old = Model(agent.model, agent.llm_config, agent.model_settings or {}, agent.response_format)
    columns = {**_columns(given), **changed_model(old, given).columns, **embedding_columns(given)}
    return {**columns, "extra": {**(agent.extra or {}), **columns["extra"]}}


def _set_belongings(agent: Agent, given: Given) -> None:
    """Tags and secrets, where ``given`` names them."""
    if "tags" in given:
        AgentTag.objects.filter(agent=agent).delete()
        AgentTag.objects.bulk_create([AgentTag(agent=agent, tag=tag) for tag in dict.fromkeys(given["tags"])])
    secrets = {**given.get("tool_exec_environment_variables", {}), **given.get("secrets", {})}
    if secrets or "secrets" in given or "tool_exec_environment_variables" in given:
        set_secrets(agent, secrets)
