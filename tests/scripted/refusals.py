"""How a vendor says no: one exception for every rule, rendered by the vendor's own wire module."""

from __future__ import annotations

from typing import Any, NoReturn


class Refused(Exception):
    """The request is refused. ``kind`` is the vendor's error type; ``param`` and ``code`` are OpenAI's."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "invalid_request_error",
        param: str | None = None, code: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code


def refuse(message: str, *, param: str | None = None, code: str | None = None) -> NoReturn:
    """Refuse with a 400. Raises Refused."""
    raise Refused(message, param=param, code=code)


def expect(condition: Any, message: str, *, param: str | None = None, code: str | None = None) -> None:
    """Refuse with a 400 unless the condition holds."""
    if not condition:
        raise Refused(message, param=param, code=code)
