"""Agents from a file and into one. An import makes all agents of the file, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from agents.actions.agents import create_agent, without_nulls
from agents.actions.blocks import create_block
from agents.actions.deletion import delete_agent
from agents.actions.revival import Revival
from agents.actions.rules import Stored, checked_rules, without_tool
from agents.models import Agent, Block, Conversation, Message, MessageRole
from agents.policies.rows import default_conversation
from agents.wire.agent_file import agent_file
from lettaweb.lib.problems import Problem
from tools import policies, registry
from tools.actions import take_back, upsert_tool
from tools.models import Tool

Given = Mapping[str, Any]

AT_ONCE = 200  # messages of one write
SOURCE_TYPES = ("python", "typescript")


@dataclass
class Made:
    """What an import has stored so far: agents, blocks by their ids in the file, tools with what was there before."""

    agents: list[Agent] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    tools: list[tuple[Tool, Tool | None]] = field(default_factory=list)


def export_agent(
    agent: Agent, *, conversation: Conversation | None = None, with_messages: bool = True
) -> dict[str, Any]:
    """The file of an agent with the messages of ``conversation`` (its own one)."""
    rows = Message.objects.filter(conversation=conversation or default_conversation(agent)).order_by("id")
    rows = rows.select_related("agent", "conversation", "run", "step")
    return agent_file(agent, rows if with_messages else rows.none())


def import_agents(actor: policies.Actor, file: Given, options: Given) -> list[Agent]:
    """Make the agents of a checked file; ``options`` are the checked fields of the form.

    Blocks are made anew and belong to the agents. An import that fails leaves nothing, and replaced tools as
    they were. Raises a :class:`Problem`: 403 without the right to
    store the file's tools, 400, 404 and 422 as creating agents does, 400 for ids that the file lacks.
    """
    made = Made()
    try:
        _make(actor, file, options, made)
    except BaseException:
        _undo(actor, made)
        raise
    return made.agents


def _make(actor: policies.Actor, file: Given, options: Given, made: Made) -> None:
    tools = {tool["id"]: _tool(actor, tool, options, made) for tool in file.get("tools") or ()}
    foreign = [tool["name"] for tool in file.get("tools") or () if tools[tool["id"]] is None]
    blocks = {block["id"]: block for block in file.get("blocks") or ()}
    for entry in [{**entry, "tool_rules": _rules_without(entry, foreign)} for entry in file["agents"]]:
        made.agents.append(_agent(entry, options, tools, _blocks(entry, blocks, made.blocks)))
        _store_history(made.agents[-1], entry, options)


def _tool(actor: policies.Actor, entry: Given, options: Given, made: Made) -> Tool | None:
    """The tool of a file's entry: the built-in one, the one that is here already, or the file's.

    None for a built-in tool of another server: it has no source, and nothing here does its work.
    """
    here = Tool.objects.filter(name=entry["name"]).first()
    if here is not None and (registry.is_builtin(here.name) or not options["override_existing_tools"]):
        return here
    if not entry.get("source_code") and str(entry.get("tool_type")).startswith("letta_"):
        return None
    if not entry.get("source_code"):
        raise Problem(400, f"The tool '{entry['name']}' of the file has no source and is not known here")
    fields = without_nulls(entry)
    if fields.get("source_type") not in SOURCE_TYPES:
        fields.pop("source_type", None)
    fields.pop("args_json_schema", None)
    fields["json_schema"] = {**fields.get("json_schema", {}), "name": entry["name"]}
    made.tools.append((upsert_tool(actor, fields), here))
    return made.tools[-1][0]


def _agent(entry: Given, options: Given, tools: Mapping[str, Tool | None], blocks: Sequence[Block]) -> Agent:
    fields = without_nulls(entry)
    own = [_named(tools, wire) for wire in fields.get("tool_ids", ())]
    fields["tool_ids"] = [tool.wire_id for tool in own if tool is not None]
    fields["block_ids"] = [block.wire_id for block in blocks]
    fields["include_base_tools"] = fields["include_base_tool_rules"] = False
    fields |= _overrides(fields, options)
    variables = {**fields.get("tool_exec_environment_variables", {}), **fields.get("secrets", {})}
    fields["secrets"] = {**variables, **options.get("env_vars_json", {}), **options.get("secrets", {})}
    fields["initial_message_sequence"] = []
    return create_agent(fields)


def _rules_without(entry: Given, foreign: Sequence[str]) -> Stored:
    stored = checked_rules(entry.get("tool_rules") or [])
    for name in foreign:
        stored = without_tool(stored, name)
    return stored


def _overrides(fields: Given, options: Given) -> dict[str, Any]:
    """What the form says in the place of the file."""
    name = options.get("override_name") or options.get("name")
    suffix = "_copy" if options["append_copy_suffix"] and not name else ""
    said: dict[str, Any] = {"name": (name or fields.get("name") or "")[: 200 - len(suffix)] + suffix}
    if model := options.get("override_model_handle") or options.get("model"):
        said |= dict.fromkeys(("llm_config", "model_settings", "context_window_limit", "max_tokens"))
        said["model"] = model
    if embedding := options.get("override_embedding_handle") or options.get("embedding"):
        said |= {"embedding": embedding, "embedding_config": None}
    if options.get("project_id"):
        said["project_id"] = options["project_id"]
    return said


def _blocks(entry: Given, blocks: Mapping[str, Given], shared: dict[str, Block]) -> list[Block]:
    """The blocks of an agent, each made once for all agents of the file."""
    for wire in entry.get("block_ids") or ():
        if wire not in shared:
            shared[wire] = create_block(without_nulls(_named(blocks, wire)))
    return [shared[wire] for wire in dict.fromkeys(entry.get("block_ids") or ())]


def _named(known: Mapping[str, Any], wire: str) -> Any:
    if wire not in known:
        raise Problem(400, f"The file does not hold '{wire[:100]}'")
    return known[wire]


def _store_history(agent: Agent, entry: Given, options: Given) -> None:
    """The file's messages behind the new system message, in pieces."""
    messages = [] if options["strip_messages"] else list(entry.get("messages") or ())
    if messages and messages[0]["role"] == MessageRole.SYSTEM:
        messages = messages[1:]
    in_context = set(entry.get("in_context_message_ids") or ())
    revival = Revival(agent.model.partition("/")[0])
    conversation = default_conversation(agent)
    rows = [revival.row(conversation, sent, in_context=sent["id"] in in_context) for sent in messages]
    for start in range(0, len(rows), AT_ONCE):
        with transaction.atomic():
            Message.objects.bulk_create(rows[start : start + AT_ONCE])


def _undo(actor: policies.Actor, made: Made) -> None:
    for agent in made.agents:
        delete_agent(agent, actor)
    Block.objects.filter(pk__in=[block.pk for block in made.blocks.values()]).delete()
    for tool, former in reversed(made.tools):
        take_back(tool, former)
