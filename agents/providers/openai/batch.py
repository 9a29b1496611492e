"""OpenAI's batches: files, states and result lines; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from agents.providers.base import BatchResult, BatchState, BatchStatus, ProviderError
from agents.providers.failures import refusal
from agents.providers.lines import count_of, load_line, mapping_of, text_of
from agents.providers.openai.answer import VENDOR, read_completion

PATH = "/batches"
ENDPOINT = "/v1/chat/completions"
KEY = "lettaweb_batch"
SKEW = 300.0  # seconds that the vendor's clock may be behind ours
STATES: Mapping[str, BatchState] = {
    "validating": "in_progress",
    "in_progress": "in_progress",
    "finalizing": "in_progress",
    "cancelling": "canceling",
    "completed": "ended",
    "cancelled": "ended",
    "failed": "failed",
    "expired": "expired",
}


def path_of(batch_id: str) -> str:
    return f"{PATH}/{quote(batch_id, safe='')}"


def file_path(file_id: str) -> str:
    return f"/files/{quote(file_id, safe='')}/content"


def wish(file_id: str, key: str) -> Mapping[str, Any]:
    """The body that creates a batch of an uploaded file; it carries our key."""
    return {
        "input_file_id": file_id,
        "endpoint": ENDPOINT,
        "completion_window": "24h",
        "metadata": {KEY: key},
    }


def status(entry: Mapping[str, Any]) -> BatchStatus:
    """The state of a batch; one that we do not know is still at work."""
    made = created(entry)
    return BatchStatus(
        id=text_of(entry.get("id")),
        state=STATES.get(text_of(entry.get("status")), "in_progress"),
        counts={name: count_of(value) for name, value in mapping_of(entry.get("request_counts")).items()},
        created_at=datetime.fromtimestamp(made, UTC).isoformat() if math.isfinite(made) else "",
        raw=entry,
    )


def created(entry: Mapping[str, Any]) -> float:
    """When a batch was created, in epoch seconds; one that the vendor does not say is now and later."""
    return float(count_of(entry.get("created_at"))) or math.inf


def is_of(entry: Mapping[str, Any], key: str) -> bool:
    """Whether the batch carries our key."""
    return mapping_of(entry.get("metadata")).get(KEY) == key


def result_files(entry: Mapping[str, Any]) -> list[str]:
    """The ids of the result files; null and "" mean that there is none."""
    return [found for name in ("output_file_id", "error_file_id") if (found := text_of(entry.get(name)))]


def read_result(line: bytes, names: Mapping[str, str]) -> BatchResult | None:
    """One line of an output or error file; None when it names no request."""
    entry = load_line(line)
    custom_id = text_of((entry or {}).get("custom_id"))
    if not entry or not custom_id:
        return None
    response = mapping_of(entry.get("response"))
    code = response.get("status_code")
    error = mapping_of(entry.get("error"))
    if error:
        return _failed(custom_id, error, code if isinstance(code, int) and code >= 400 else None)
    if isinstance(code, int) and code >= 400:
        return _failed(custom_id, mapping_of(response.get("body")), code)
    try:
        return BatchResult(custom_id, "succeeded", response=read_completion(response.get("body"), names))
    except ProviderError as unusable:
        return BatchResult(custom_id, "errored", error=unusable)


def _failed(custom_id: str, error: Mapping[str, Any], code: int | None) -> BatchResult:
    reason = text_of(error.get("code"))
    if reason == "batch_expired":
        return BatchResult(custom_id, "expired", error=ProviderError("timeout", "Expired before it was processed"))
    if reason == "batch_cancelled":
        return BatchResult(
            custom_id, "canceled", error=ProviderError("bad_request", "Cancelled before it was processed")
        )
    return BatchResult(custom_id, "errored", error=refusal(VENDOR, error, status=code))
