"""What runs an uploaded tool, seen from outside: one call in, one outcome out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class SandboxCall:
    """One call of one uploaded tool.

    ``source`` is the tool's Python text, ``function`` the top-level function to call with
    ``arguments`` (JSON keyword arguments). ``env`` is the tool's whole environment beside what the
    sandbox itself sets. ``secrets`` are the values to black out in everything that comes back.
    ``agent_state`` is JSON for the parameters ``agent_state`` and ``agent_id``, None when there is no agent.
    ``timeout`` is in seconds. ``network`` lists the host names that the tool may reach (empty: none): ``name`` for
    ports 80 and 443, ``name:port`` for another, ``*.name`` for all below.
    """

    id: str
    source: str
    function: str
    arguments: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    agent_id: str = ""
    tool_id: str = ""
    agent_state: Mapping[str, Any] | None = None
    timeout: float = 30.0
    network: tuple[str, ...] = ()
    pip_requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxOutcome:
    """How a call ended.

    ``value`` is the returned JSON value (status success), already cleaned of NUL, lone surrogates and
    non-finite numbers. ``error`` is the text for the model (status error), in the form
    ``Error executing function <name>: <ExceptionName>: <message>``. ``block_values`` are the values of the
    memory blocks that the tool changed, by label. ``seconds`` is wall time.
    """

    status: Literal["success", "error"]
    value: Any = None
    error: str = ""
    stdout: str = ""
    stderr: str = ""
    block_values: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class SandboxUnavailable(Exception):
    """No tier of the sandbox that the settings allow works on this machine; the text names the fix."""


@dataclass(frozen=True, slots=True)
class Tier:
    """How well this machine shuts tools in: 3 full, 2 Landlock and seccomp only, 0 not at all.

    ``name`` is full, landlock, unsafe or none; ``why`` says why it is not more, ``missing`` what tools do without.
    """

    number: int
    name: str
    why: str = ""
    missing: tuple[str, ...] = ()
