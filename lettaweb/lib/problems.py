"""An answer that says no: raised by actions, turned into a response at the rim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Problem(Exception):
    """A refusal with its HTTP ``status`` and ``detail``; ``extra`` stands beside ``detail`` in the body."""

    def __init__(
        self,
        status: int,
        detail: str | Mapping[str, Any],
        *,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        return {"detail": self.detail, **self.extra}
