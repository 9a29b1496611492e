"""What a vendor call can fail with, in the loop's own words."""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "bad_request",
    "authentication",
    "insufficient_credits",
    "rate_limit",
    "timeout",
    "overloaded",
    "server",
    "connection",
    "context_overflow",
    "invalid_response",
    "no_tool_call",
    "not_configured",
    "unknown_model",
]


class ProviderError(Exception):
    """A vendor call failed for good (retries, where allowed, are over).

    ``message`` may be shown to an operator; it holds no key and no header. ``started`` is true when
    part of the answer had arrived already. ``detail`` is the vendor's own error type, "" when it gave none.
    """

    RETRYABLE: frozenset[str] = frozenset({"rate_limit", "timeout", "overloaded", "server", "connection"})

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        started: bool = False,
        detail: str = "",
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.started = started
        self.detail = detail
        self._retryable = retryable

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later and nothing of an answer was seen; never true once ``started``."""
        by_kind = self.kind in self.RETRYABLE
        return not self.started and (by_kind if self._retryable is None else self._retryable)
