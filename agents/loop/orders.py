"""What the loop tells its driver to do next, and what the driver tells the loop came of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.events import Batch, Event, StepHead
from agents.models import Step
from agents.providers.base import ModelRequest, ModelResponse, ProviderError
from tools.runner import Code, ToolResult, sandbox_call
from tools.sandbox.base import SandboxCall


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model. The answer belongs to ``step``, stored with the order, and will be message ``message``.

    ``silent`` names the tools whose calls stream no deltas (gated ones, speech). ``one_call``: only the
    first call of the answer counts. ``last_seq``: where the log stands. ``known_ids``: call ids of this
    conversation that are taken. ``shown``: what readers saw of an earlier attempt, as (kind, text).
    """

    step: Step
    message: uuid.UUID
    head: StepHead
    provider: str
    request: ModelRequest
    stream: bool
    silent: frozenset[str]
    one_call: bool
    last_seq: int
    known_ids: frozenset[str] = frozenset()
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def step_id(self) -> int:
        return self.step.pk


@dataclass(frozen=True, slots=True)
class Summarize:
    """Ask the model for a summary of these messages, which it will replace; ``clip_chars`` bounds it."""

    provider: str
    request: ModelRequest
    message_ids: tuple[int, ...]
    trigger: str
    clip_chars: int = 0


@dataclass(frozen=True, slots=True)
class CallToRun:
    """One claimed call: its row, its arguments, and everything that the sandbox needs.

    ``secrets`` are the agent's, by name; ``hidden`` the texts of secret arguments. The result repeats neither.
    """

    pk: int
    call_id: str
    code: Code
    arguments: Mapping[str, Any]
    secrets: Mapping[str, str]
    agent_id: str
    agent_state: Mapping[str, Any] | None
    block_versions: Mapping[str, int]
    hidden: tuple[str, ...] = ()

    def for_sandbox(self) -> SandboxCall:
        return sandbox_call(
            self.code,
            self.arguments,
            call_id=self.call_id,
            agent_id=self.agent_id,
            agent_state=self.agent_state,
            secrets=self.secrets,
            hidden=self.hidden,
        )


@dataclass(frozen=True, slots=True)
class Act:
    """Run these calls, beside each other; tell the loop of each result as it comes."""

    calls: tuple[CallToRun, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The run has ended."""

    status: str


@dataclass(frozen=True, slots=True)
class Held:
    """The driver wants to stop before this verb: "act" or "ask"."""

    verb: str


Order = Ask | Summarize | Act | Done | Held


@dataclass(frozen=True, slots=True)
class Streamed:
    """What the driver knows of the log of an open answer: written deltas, those that are not yet, its last number."""

    written: Batch | None = None
    rest: Sequence[Event] = field(default_factory=tuple)
    head: StepHead | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The model answered. ``kinds``: the kinds of deltas that readers saw ("r", "a", "c")."""

    step_id: int
    response: ModelResponse
    streamed: Streamed = Streamed()
    kinds: frozenset[str] = frozenset()
    streamed_calls: frozenset[str] = frozenset()
    first_token_ns: int | None = None
    new_message: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class AskFailed:
    """The model could not be asked, or its answer cannot be used."""

    step_id: int
    error: ProviderError
    streamed: Streamed = Streamed()


@dataclass(frozen=True, slots=True)
class Summarized:
    """The summary came (``text``), or did not (None, with the reason)."""

    order: Summarize
    text: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """One claimed call has its result."""

    pk: int
    result: ToolResult
    block_versions: Mapping[str, int] = field(default_factory=dict)


Outcome = Answered | AskFailed | Summarized | Ran | None


@dataclass(frozen=True, slots=True)
class Advanced:
    """The next order, and what the log gained (None: nothing)."""

    order: Order | None
    batch: Batch | None
