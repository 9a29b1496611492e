"""What the file and batch routes keep: rows without behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass(slots=True)
class BatchRequest:
    """One request of a batch. ``refusal`` is why it will be errored, None for a valid one."""

    custom_id: str
    body: Mapping[str, Json]
    refusal: Exception | None = None


@dataclass(slots=True)
class Batch:
    """A batch of either vendor. ``output`` and ``errors`` are result lines once it has ended.

    status: Anthropic's in_progress, canceling, ended; OpenAI's validating, in_progress, finalizing,
    completed, failed, expired, cancelling, cancelled. Times are seconds since the epoch.
    """

    id: str
    key: str
    status: str
    requests: list[BatchRequest]
    created: float
    polls: int = 0
    times: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    output: bytes | None = None
    deleted: bool = False
    metadata: Mapping[str, str] | None = None
    input_file: str = ""
    output_file: str | None = None
    error_file: str | None = None
    faults: list[dict[str, Json]] = field(default_factory=list)

    @property
    def custom_ids(self) -> list[str]:
        return [request.custom_id for request in self.requests]


@dataclass(slots=True)
class StoredFile:
    """An uploaded or written file."""

    id: str
    name: str
    purpose: str
    content: bytes
    created: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How a batch ends. ``outcomes``: custom id → succeeded, canceled, expired, errored or a fault's name;
    ``default`` for all others ("" = what the script answers). ``raw`` are the result lines themselves
    (``{{id1}}`` stands for the first custom id), ``raw_errors`` the lines of OpenAI's error file.
    """

    outcomes: Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    raw: bytes | None = None
    raw_errors: bytes | None = None
    status: str = ""

    def outcome(self, custom_id: str) -> str:
        return self.outcomes.get(custom_id, self.default)


def with_ids(raw: bytes, custom_ids: list[str]) -> bytes:
    """``raw`` with {{id1}}, {{id2}}, … replaced."""
    for place, custom_id in enumerate(custom_ids, 1):
        raw = raw.replace(b"{{id%d}}" % place, custom_id.encode())
    return raw
