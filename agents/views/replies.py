"""Answers of raw ASGI routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


async def send_json(send: Send, status: int, body: Any, *, headers: Headers = ()) -> None:
    raw = dumps(body).encode()
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": raw})


async def send_problem(send: Send, problem: Problem) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in problem.headers.items()]
    await send_json(send, problem.status, problem.body, headers=headers)
