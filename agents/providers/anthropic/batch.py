"""Message Batches: bodies, states and result lines; pure but for reading the spooled file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agents.providers.anthropic.answer import VENDOR, read_message
from agents.providers.base import BatchResult, BatchState, BatchStatus, ProviderError
from agents.providers.failures import refusal
from agents.providers.lines import count_of, load_line, mapping_of, text_of

PATH = "/v1/messages/batches"
SKEW = 300.0  # seconds that the vendor's clock may be behind ours
STATES: Mapping[str, BatchState] = {"in_progress": "in_progress", "canceling": "canceling", "ended": "ended"}


def path_of(batch_id: str) -> str:
    return f"{PATH}/{quote(batch_id, safe='')}"


async def body_of(path: str) -> bytes:
    """The body that creates a batch of the JSON lines in the file ``path``; read in a thread."""
    content = await asyncio.to_thread(Path(path).read_bytes)
    return b'{"requests":[' + b",".join(line for line in content.split(b"\n") if line.strip()) + b"]}"


def status(entry: Mapping[str, Any]) -> BatchStatus:
    """The state of a batch; one that we do not know is still at work."""
    counts = {name: count_of(value) for name, value in mapping_of(entry.get("request_counts")).items()}
    return BatchStatus(
        id=text_of(entry.get("id")),
        state=STATES.get(text_of(entry.get("processing_status")), "in_progress"),
        counts=counts,
        created_at=text_of(entry.get("created_at")),
        raw=entry,
    )


def created(entry: Mapping[str, Any]) -> float:
    """When a batch was created, in epoch seconds; a date that cannot be read is now and later."""
    try:
        return datetime.fromisoformat(text_of(entry.get("created_at"))).timestamp()
    except ValueError:
        return float("inf")


def read_result(line: bytes, names: Mapping[str, str]) -> BatchResult | None:
    """One line of a result file; None when it names no request."""
    entry = load_line(line)
    custom_id = text_of((entry or {}).get("custom_id"))
    if not entry or not custom_id:
        return None
    result = mapping_of(entry.get("result"))
    outcome = text_of(result.get("type"))
    if outcome == "succeeded":
        return _succeeded(custom_id, result.get("message"), names)
    if outcome == "canceled":
        return BatchResult(
            custom_id, "canceled", error=ProviderError("bad_request", "Cancelled before it was processed")
        )
    if outcome == "expired":
        return BatchResult(custom_id, "expired", error=ProviderError("timeout", "Expired before it was processed"))
    if outcome == "errored":
        return BatchResult(custom_id, "errored", error=refusal(VENDOR, result.get("error"), status=None))
    error = ProviderError("invalid_response", f"{VENDOR}: unknown outcome {outcome[:40]!r} of a batch request")
    return BatchResult(custom_id, "errored", error=error)


def _succeeded(custom_id: str, message: Any, names: Mapping[str, str]) -> BatchResult:
    try:
        return BatchResult(custom_id, "succeeded", response=read_message(message, names))
    except ProviderError as error:
        return BatchResult(custom_id, "errored", error=error)
