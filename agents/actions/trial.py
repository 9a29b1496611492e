"""Try out a tool of an agent by hand: it runs as it would for the model, and nothing enters the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from agents.memory import builtins
from agents.memory.blocks import block_views
from agents.memory.edit import apply_block_values
from agents.memory.secrets import secrets_of
from agents.memory.state import agent_state, block_versions
from agents.models import Agent
from agents.policies.rows import default_conversation
from lettaweb.lib.problems import Problem
from tools import arguments, policies, runner
from tools.actions import trial
from tools.models import Tool, ToolType

Given = Mapping[str, Any]


def run_tool(actor: policies.Actor, agent: Agent, name: str, given: Given) -> dict[str, Any]:
    """Run the agent's tool ``name`` with ``given`` arguments; a ToolExecutionResult.

    Waits for the tool, so call it outside transactions. Raises a :class:`Problem` 403 without the right,
    404 when the agent has no such tool. Arguments that do not fit are told as the model would be told.
    """
    policies.must_write(actor)
    tool = agent.tools.filter(name=name).first()
    if tool is None:
        raise Problem(404, f"Tool '{name[:100]}' is not attached to agent {agent.wire_id}")
    try:
        arguments.check(dict(given), tool.json_schema.get("parameters") or {})
    except arguments.ArgumentsError as error:
        return _result(runner.ToolResult(ok=False, text=f"Error executing function {name}: {error}"))
    if tool.tool_type != ToolType.CUSTOM:
        return _builtin(agent, tool, given)
    return _uploaded(agent, tool, given)


def _builtin(agent: Agent, tool: Tool, given: Given) -> dict[str, Any]:
    with transaction.atomic():
        result = builtins.run(tool.name, given, agent, default_conversation(agent), now=timezone.now())
    return _result(runner.ToolResult(ok=result.ok, text=result.text))


def _uploaded(agent: Agent, tool: Tool, given: Given) -> dict[str, Any]:
    blocks = block_views(agent)
    code = runner.code_of(tool)
    call = runner.sandbox_call(
        code,
        given,
        call_id=f"trial-{uuid4()}",
        agent_id=agent.wire_id,
        agent_state=agent_state(agent, blocks, agent.tools.all()),
        secrets=secrets_of(agent),
    )
    with trial():
        result = runner.run_blocking(code, call)
    refused = _save_blocks(agent, result, block_versions(blocks)) if result.ok and result.block_values else None
    return _result(result if refused is None else runner.ToolResult(ok=False, text=refused))


def _save_blocks(agent: Agent, result: runner.ToolResult, versions: Mapping[str, int]) -> str | None:
    with transaction.atomic():
        return apply_block_values(agent, result.block_values, versions)


def _result(result: runner.ToolResult) -> dict[str, Any]:
    return {
        "status": "success" if result.ok else "error",
        "func_return": result.text,
        "agent_state": None,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "sandbox_config_fingerprint": None,
    }
