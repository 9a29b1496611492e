"""The Batch API of OpenAI: one model per file; a file that does not pass the validation fails as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.providers.base import BatchStatus
from batches.drivers.base import Driver, Refusal

WAIT = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "too_many_batches"})
PAUSE = frozenset({"insufficient_quota", "billing_hard_limit_reached", "invalid_api_key"})


def driver() -> Driver:
    return Driver("openai", one_model=True, count=count, refusal=refusal)


def count(status: BatchStatus) -> int | None:
    """The total that the vendor counts; it counts from the end of the validation on."""
    return status.counts.get("total") or None


def refusal(status: BatchStatus) -> Refusal:
    faults = _faults(status.raw)
    codes = {str(fault.get("code") or "") for fault in faults}
    said = "; ".join(str(fault.get("message") or fault.get("code") or "") for fault in faults[:3])
    message = f"OpenAI refused the batch: {said}" if said else "OpenAI refused the batch without a reason"
    if codes & PAUSE:
        return Refusal("pause", "insufficient_credits", message)
    if codes & WAIT:
        return Refusal("wait", "rate_limit", message)
    lines = {fault["line"]: str(fault.get("message") or "") for fault in faults if isinstance(fault.get("line"), int)}
    return Refusal("fail", "bad_request", message, lines)


def _faults(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    errors = raw.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    return [fault for fault in data if isinstance(fault, dict)] if isinstance(data, list) else []
