"""What the loop asks of a model vendor, in the loop's own words.

A provider turns a :class:`ModelRequest` into its vendor's wire form and the vendor's answer into
deltas and one :class:`ModelResponse`. It keeps no state of a run. The request that reaches it is
already valid for the strictest vendor (``context.py`` sees to that); what differs per vendor
(ids, reasoning, image blocks, strict schemas) is the provider's own business.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.providers.errors import ErrorKind as ErrorKind
from agents.providers.errors import ProviderError as ProviderError
from agents.providers.parts import (
    CallPart as CallPart,
)
from agents.providers.parts import (
    ChatMessage as ChatMessage,
)
from agents.providers.parts import (
    ImagePart as ImagePart,
)
from agents.providers.parts import (
    Part as Part,
)
from agents.providers.parts import (
    ReasoningPart as ReasoningPart,
)
from agents.providers.parts import (
    RedactedReasoningPart as RedactedReasoningPart,
)
from agents.providers.parts import (
    ResultPart as ResultPart,
)
from agents.providers.parts import (
    TextPart as TextPart,
)

Json = Any  # a value that json.dumps accepts

StopReason = Literal["end_turn", "tool_use", "max_tokens", "pause", "refusal"]
"""Why the model stopped, vendor-neutral. An unknown vendor reason is ``end_turn``."""

# --- what is asked ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool on offer. ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """auto: may call; any: must call one; tool: must call ``name``; none: must not call."""

    kind: Literal["auto", "any", "tool", "none"] = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. ``model`` is the vendor's own name, without the provider's prefix.

    ``reasoning`` None: on where the model has it; False: off; True: on. ``reasoning_tokens`` is the
    budget where the model takes one (0: the provider's default). ``temperature`` only when the agent
    set one. ``max_tokens`` bounds the answer. ``timeout`` in seconds bounds the silence, not the answer.
    """

    model: str
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = False
    max_tokens: int = 4096
    temperature: float | None = None
    reasoning: bool | None = None
    reasoning_tokens: int = 0
    reasoning_effort: str = ""
    response_format: Mapping[str, Json] | None = None
    timeout: float = 600.0


# --- what comes back ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins; ``index`` counts the calls of this answer from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the arguments' JSON text of call ``index``."""

    index: int
    text: str


Delta = TextDelta | ReasoningDelta | CallStart | CallDelta


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call. ``input`` counts everything that was sent, cached or not."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    known: bool = True


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A whole answer. ``parts`` in the vendor's order; call ids are unique and not empty."""

    parts: tuple[Part, ...]
    stop: StopReason
    usage: Usage = Usage()
    vendor_stop: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that a provider lists."""

    name: str
    display_name: str = ""
    context_window: int = 200_000
    max_output: int = 4096
    reasoning: bool = False


# --- the protocol ---------------------------------------------------------------------------------


Answer = AsyncGenerator[Sequence[Delta] | ModelResponse, None]


class Provider(Protocol):
    """A model vendor. ``name`` is the prefix of its handles (``anthropic/claude-…``)."""

    name: str

    def configured(self) -> bool:
        """Whether the settings hold what a call needs."""
        ...

    def stream(self, request: ModelRequest) -> Answer:
        """Yield deltas as they come, the :class:`ModelResponse` last; raise :class:`ProviderError`.

        What came at once is yielded at once; the vendor's next bytes are read when the next item is asked for.
        """
        ...

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The whole answer in one vendor call without streaming; raise :class:`ProviderError`."""
        ...

    def describe(self, model: str) -> ModelInfo:
        """What a model that is on no list is taken for."""
        ...

    def forget(self) -> None:
        """Drop what was learned of the vendor's models."""
        ...

    def warm(self) -> None:
        """Import what a call needs; may block for seconds."""
        ...

    async def models(self) -> Sequence[ModelInfo]:
        """The models that the vendor lists; raise :class:`ProviderError`."""
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The vendor's exact count of a request's tokens, None where it offers none."""
        ...

    async def close(self) -> None:
        """Close the shared client."""
        ...


# --- batches (providers that have a batch API) ----------------------------------------------------

BatchState = Literal["in_progress", "canceling", "ended", "failed", "expired"]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """What the vendor says of one of its batches. Only ``state`` decides; counts are for display."""

    id: str
    state: BatchState
    counts: Mapping[str, int] = field(default_factory=dict)
    created_at: str = ""
    raw: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One line of a result file: an outcome of the request ``custom_id``.

    Exactly one of ``response`` (outcome succeeded) and ``error`` is set; outcome is one of
    succeeded, errored, canceled, expired.
    """

    custom_id: str
    outcome: Literal["succeeded", "errored", "canceled", "expired"]
    response: ModelResponse | None = None
    error: ProviderError | None = None


class BatchProvider(Provider, Protocol):
    """A vendor with a batch API."""

    max_batch_requests: int
    max_batch_bytes: int

    def batch_line(self, custom_id: str, request: ModelRequest) -> bytes:
        """The JSON line (no newline) that asks ``request`` under ``custom_id`` in a batch."""
        ...

    async def submit_batch(self, path: str, *, key: str, count: int) -> BatchStatus:
        """Create a vendor batch from the file ``path`` of ``count`` JSON lines, without any retry.

        ``key`` is our own id of the batch, kept at the vendor where it takes metadata. Raises
        :class:`ProviderError`; kinds timeout, connection, server and overloaded mean that the batch
        may exist all the same.
        """
        ...

    async def find_batches(self, *, since: float, key: str) -> Sequence[BatchStatus]:
        """The vendor's batches created since ``since`` (epoch seconds) that may be the one of ``key``."""
        ...

    async def poll_batch(self, batch_id: str) -> BatchStatus: ...

    async def cancel_batch(self, batch_id: str) -> BatchStatus: ...

    def batch_results(self, batch_id: str) -> AsyncIterator[bytes]:
        """The raw lines of all result files of an ended batch, undecoded, any order."""
        ...

    def read_result(self, line: bytes, tools: Sequence[str] = ()) -> BatchResult | None:
        """One raw line read; None when it is blank, garbled or names no request.

        ``tools`` are the names of the tools that were on offer, to give calls of a tool whose name the vendor
        does not take their own name back.
        """
        ...
