"""Message Batches of Anthropic: one batch for all models; it never fails as a whole."""

from __future__ import annotations

from agents.providers.base import BatchStatus
from batches.drivers.base import Driver, Refusal


def driver() -> Driver:
    return Driver("anthropic", one_model=False, count=count, refusal=refusal)


def count(status: BatchStatus) -> int | None:
    return sum(status.counts.values()) or None


def refusal(status: BatchStatus) -> Refusal:
    return Refusal("fail", "bad_request", "The provider reports a failed batch without a reason")
