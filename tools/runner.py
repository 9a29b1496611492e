"""Runs one uploaded tool in the sandbox and turns what comes back into the text that everybody sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools import results, sandbox
from tools.models import Tool
from tools.sandbox.base import SandboxCall, SandboxOutcome, SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Code:
    """What of a tool is needed to run it, read once in a transaction."""

    name: str
    source: str
    tool_id: str
    char_limit: int
    network: tuple[str, ...] = ()
    pip_requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How a tool call ended. ``block_values``: memory blocks that it changed, by label."""

    ok: bool
    text: str
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    block_values: Mapping[str, str] = field(default_factory=dict)


def code_of(tool: Tool) -> Code:
    return Code(
        name=tool.name,
        source=tool.source_code,
        tool_id=tool.wire_id,
        char_limit=tool.return_char_limit,
        network=tuple(tool.network_hosts or ()),
        pip_requirements=tuple(requirement(entry) for entry in tool.pip_requirements or ()),
    )


def requirement(entry: Mapping[str, Any]) -> str:
    """A requirement of the wire (name, version) as pip writes it."""
    version = entry.get("version")
    return f"{entry['name']}=={version}" if version else str(entry["name"])


def sandbox_call(
    code: Code,
    arguments: Mapping[str, Any],
    *,
    call_id: str,
    agent_id: str = "",
    agent_state: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> SandboxCall:
    """The call as the sandbox takes it.

    ``secrets`` reach the tool's environment; they and the ``hidden`` texts are blacked out in what comes back.
    """
    given = dict(secrets or {})
    return SandboxCall(
        id=call_id,
        source=code.source,
        function=code.name,
        arguments=arguments,
        env={**given, **(environment or {})},
        secrets=tuple(value for value in (*given.values(), *hidden) if value),
        agent_id=agent_id,
        tool_id=code.tool_id,
        agent_state=agent_state,
        network=code.network,
        pip_requirements=code.pip_requirements,
    )


async def run(code: Code, call: SandboxCall) -> ToolResult:
    """Run ``call``; cancelling the task kills it. Never raises for what the tool does."""
    try:
        return read_outcome(code, await sandbox.run(call))
    except SandboxUnavailable as error:
        return ToolResult(ok=False, text=str(error))


def run_blocking(code: Code, call: SandboxCall) -> ToolResult:
    """As :func:`run`, for synchronous callers outside any transaction."""
    try:
        return read_outcome(code, sandbox.run_blocking(call))
    except SandboxUnavailable as error:
        return ToolResult(ok=False, text=str(error))


def read_outcome(code: Code, outcome: SandboxOutcome) -> ToolResult:
    ok = outcome.status == "success"
    text = results.as_text(outcome.value) if ok else outcome.error
    return ToolResult(
        ok=ok,
        text=results.truncate(text, code.char_limit),
        stdout=[outcome.stdout] if outcome.stdout else [],
        stderr=[outcome.stderr] if outcome.stderr else [],
        block_values=outcome.block_values,
    )
