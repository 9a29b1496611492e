"""What went wrong at a vendor, in the words of :class:`ProviderError`; never shows a key or a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from agents.providers.base import ErrorKind, ProviderError
from agents.providers.lines import mapping_of, text_of

MAX_MESSAGE = 2000
OVERFLOW = re.compile(
    r"prompt is too long|context[ _](length|window|size|limit)|maximum context|too many (input )?tokens"
    r"|input (is )?too long|exceeds? the (available|model's|maximum) context|reduce the length of the (messages|prompt)"
    r"|request_too_large|input length and .?max_tokens.? exceed",
    re.IGNORECASE,
)
CREDIT = re.compile(
    r"credit balance|insufficient[ _](quota|credit|balance|funds)|exceeded your current quota"
    r"|billing (hard )?limit|plan and billing|payment required|spend(ing)? limit",
    re.IGNORECASE,
)
SECRET = re.compile(r"\b(sk|rk|pk)-[\w*.\-]{4,}|\bBearer\s+\S+", re.IGNORECASE)
BY_TYPE: Mapping[str, ErrorKind] = {
    "invalid_request_error": "bad_request",
    "permission_error": "bad_request",
    "authentication_error": "authentication",
    "invalid_api_key": "authentication",
    "billing_error": "insufficient_credits",
    "insufficient_quota": "insufficient_credits",
    "not_found_error": "unknown_model",
    "model_not_found": "unknown_model",
    "request_too_large": "context_overflow",
    "context_length_exceeded": "context_overflow",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "timeout_error": "timeout",
    "overloaded_error": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
}
BY_STATUS: Mapping[int, ErrorKind] = {
    401: "authentication",
    402: "insufficient_credits",
    403: "authentication",
    404: "unknown_model",
    408: "timeout",
    409: "server",
    413: "context_overflow",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def classify(status: int | None, message: str, *types: str) -> ErrorKind:
    """The kind of a refusal with this HTTP status (None: it came inside an answer), text and vendor's types."""
    by_type = next((BY_TYPE[name] for name in types if name in BY_TYPE), None)
    if by_type in ("insufficient_credits", "context_overflow", "overloaded", "timeout", "rate_limit"):
        return by_type
    refused = by_type == "bad_request" or (status is not None and 400 <= status < 500)
    if refused and status not in (401, 404) and CREDIT.search(message):
        return "insufficient_credits"
    if refused and status in (None, 400, 413, 422) and OVERFLOW.search(message):
        return "context_overflow"
    if status == 403 and "permission_error" in types:
        return "bad_request"
    if status is None:
        return by_type or "server"
    return BY_STATUS.get(status) or ("server" if status >= 500 else by_type or "bad_request")


def redact(text: str, secrets: Sequence[str] = ()) -> str:
    """The text without anything that looks like a key, bounded in size."""
    for secret in secrets:
        if len(secret) > 3:
            text = text.replace(secret, "[key]")
    return SECRET.sub("[key]", text)[:MAX_MESSAGE]


def refusal(vendor: str, body: Any, *, status: int | None, secrets: Sequence[str] = ()) -> ProviderError:
    """The error of a vendor's error object, ``{"error": {…}}`` or its inside or plain text."""
    outer = mapping_of(body)
    error = mapping_of(outer.get("error")) or outer
    message = text_of(error.get("message")) or text_of(outer.get("error")) or text_of(outer.get("message"))
    message = message or text_of(outer.get("detail")) or _field_errors(outer.get("detail"))
    types = [name for name in (text_of(error.get("code")), text_of(error.get("type"))) if name]
    kind = classify(status, message, *types)
    said = redact(message, secrets).strip()
    where = f"{vendor} answered {status}" if status is not None else f"{vendor} reported an error"
    shown = f"{where}: {said}" if said else where
    return ProviderError(kind, shown, status=status, detail=redact(types[-1] if types else "", secrets))


def _field_errors(detail: Any) -> str:
    """The text of the list of field errors that many compatible servers answer."""
    if not isinstance(detail, list):
        return ""
    return "; ".join(f"{mapping_of(item).get('loc')}: {mapping_of(item).get('msg')}" for item in detail[:5])


TIMEOUTS = {"anthropic.APITimeoutError", "openai.APITimeoutError", "httpx2.TimeoutException", "builtins.TimeoutError"}
CONNECTION_ERRORS = {
    "anthropic.APIConnectionError", "openai.APIConnectionError", "httpx2.TransportError",
    "aiohttp.ClientError", "aiohttp.HttpProcessingError",
}  # fmt: skip


@contextmanager
def translated(vendor: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Turn what the SDK and its HTTP client raise into ProviderError; anything else is a bug and passes."""
    try:
        yield
    except ProviderError:
        raise
    except Exception as error:
        known = from_exception(error, vendor, secrets)
        if known is None:
            raise
        raise known from None  # the SDK's own text may quote a header


def from_exception(error: Exception, vendor: str, secrets: Sequence[str] = ()) -> ProviderError | None:
    """The ProviderError of an exception of an SDK or of httpx2, None for any other exception."""
    family = _family(error)
    if family & {"anthropic.APIStatusError", "openai.APIStatusError"}:
        return _from_status(error, vendor, secrets)
    if family & TIMEOUTS and not _lost(error):
        return ProviderError("timeout", f"{vendor} did not answer in time")
    if family & CONNECTION_ERRORS:
        return ProviderError("connection", f"The connection to {vendor} failed")
    if family & {"httpx2.HTTPError", "httpx2.StreamError", "httpx2.InvalidURL", "httpx2.CookieConflict"}:
        return ProviderError("connection", f"The connection to {vendor} failed", retryable=False)
    if family & {"anthropic.AnthropicError", "openai.OpenAIError"}:
        return ProviderError("bad_request", f"{vendor}: {redact(str(error), secrets)}")
    return None


def _family(error: BaseException) -> set[str]:
    return {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(error).__mro__}


def _lost(error: BaseException | None) -> bool:
    """Whether a connection that failed is behind it: one of the SDKs calls every such failure a timeout."""
    while error is not None and "aiohttp.ClientConnectionError" not in _family(error):
        error = error.__cause__
    return error is not None and not isinstance(error, TimeoutError)


def _from_status(error: Any, vendor: str, secrets: Sequence[str]) -> ProviderError:
    known = refusal(vendor, error.body, status=error.status_code, secrets=secrets)
    known.retry_after = retry_after(error.response.headers)
    if error.response.headers.get("x-should-retry") == "false":
        known = ProviderError(
            known.kind, known.message, status=known.status, detail=known.detail, retry_after=known.retry_after,
            retryable=False,
        )  # fmt: skip
    return known


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the vendor asks to wait, from a number, milliseconds or a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        return seconds if 0 <= seconds < 1e7 else None
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return None


def unusable(vendor: str, what: str, *, started: bool = True, detail: str = "", again: bool = False) -> ProviderError:
    """An answer that cannot be used. ``again``: before the first delta the call may be repeated."""
    return ProviderError("invalid_response", f"{vendor}: {what}", started=started, detail=detail, retryable=again)
