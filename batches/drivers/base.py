"""The words that drivers and the poll share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents import providers
from agents.providers.base import BatchProvider, BatchStatus

MOST_REQUESTS = 10_000
MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a vendor would not process a batch as a whole. ``wait``: later it might; ``pause``: a person must act;
    ``fail``: never. ``lines``: what was wrong with single lines, numbered from 1; then the others may go again.
    """

    then: Literal["wait", "pause", "fail"]
    kind: str
    message: str
    lines: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Driver:
    """``one_model``: a file holds requests for one model. ``count``: how many requests a vendor's batch holds, None
    when it does not say (yet). ``refusal``: why a batch of state failed did."""

    name: str
    one_model: bool
    count: Callable[[BatchStatus], int | None]
    refusal: Callable[[BatchStatus], Refusal]

    @property
    def provider(self) -> BatchProvider:
        found = providers.batch_provider(self.name)
        assert found is not None
        return found

    @property
    def most_requests(self) -> int:
        return min(self.provider.max_batch_requests, MOST_REQUESTS)

    @property
    def most_bytes(self) -> int:
        return min(self.provider.max_batch_bytes, MOST_BYTES)
