"""HTTP/1.1 over asyncio streams: reads one request, writes one reply. Knows nothing of vendors or scripts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

REASONS = {
    200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 413: "Payload Too Large",
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 529: "Overloaded",
}  # fmt: skip
MAX_HEAD = 256 * 1024


class BadRequest(Exception):
    """The bytes are no HTTP request; the connection is closed."""


@dataclass(slots=True)
class Request:
    """One request. Header names are in lower case; ``body`` is None when it was larger than the cap."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes | None
    size: int = 0


class Course(Protocol):
    """Where the course of a reply is noted, before the client can see it: its status, and "finished" at its end."""

    status: int
    outcome: str


@dataclass(slots=True)
class Unnoted:
    """The course of a reply that nobody looks at."""

    status: int = 0
    outcome: str = "open"


@dataclass(slots=True)
class Reply:
    """Writes the reply. ``sent`` counts bytes of the body; ``gone`` is true once the client hung up."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep_alive: bool = True
    sent: int = 0
    course: Course = field(default_factory=Unnoted)
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def gone(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    def head(self, status: int, headers: Mapping[str, str]) -> bytes:
        self.course.status = status
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in {**headers, **self.extra}.items()]
        lines.append(f"Connection: {'keep-alive' if self.keep_alive else 'close'}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def whole(
        self, status: int, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send one body with its length."""
        fields = {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}
        head = self.head(status, fields)
        self.course.outcome = "finished"
        self.writer.write(head + body)
        self.sent += len(body)
        await self.writer.drain()

    async def json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        await self.whole(status, json.dumps(value).encode(), "application/json", headers)

    def start(self, status: int, content_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Begin a chunked body."""
        fields = {"Content-Type": content_type, "Transfer-Encoding": "chunked", "Cache-Control": "no-cache"}
        self.writer.write(self.head(status, {**fields, **(headers or {})}))

    async def chunk(self, data: bytes, *, last: bool = False) -> None:
        """Send one piece of a chunked body, and with the ``last`` one its end in the same write."""
        framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self.sent += len(data)
        if last:
            self.course.outcome = "finished"
            framed += b"0\r\n\r\n"
        self.writer.write(framed)
        await self.writer.drain()

    async def end(self) -> None:
        self.course.outcome = "finished"
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def cut(self) -> None:
        """Close the connection after what was written, without the end of the body."""
        self.keep_alive = False
        self.writer.close()


Handler = Callable[[Request, Reply], Awaitable[None]]
BodyCap = Callable[[str, str], int]


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, body_cap: BodyCap
) -> None:
    """Answer the requests of one connection, one after the other, until either side closes it."""
    try:
        while True:
            request = await read_request(reader, body_cap)
            if request is None:
                return
            reply = Reply(reader, writer, keep_alive=request.headers.get("connection", "").lower() != "close")
            await handler(request, reply)
            if not reply.keep_alive:
                return
    except (ConnectionError, asyncio.IncompleteReadError, BadRequest, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()


async def read_request(reader: asyncio.StreamReader, body_cap: BodyCap) -> Request | None:
    """The next request, or None when the client closed the connection between two requests."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, target, _version = first.split(" ")
    except ValueError:
        raise BadRequest(first) from None
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    path, _, query = target.partition("?")
    body, size = await read_body(reader, headers, body_cap(method, path))
    return Request(method, unquote(path), dict(parse_qsl(query, keep_blank_values=True)), headers, body, size)


async def read_body(reader: asyncio.StreamReader, headers: Mapping[str, str], cap: int) -> tuple[bytes | None, int]:
    """The body and its size; a body above ``cap`` bytes is read to its end and dropped (None)."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await read_chunked(reader, cap)
    try:
        size = int(headers.get("content-length", "0"))
    except ValueError:
        raise BadRequest("content-length") from None
    if size <= cap:
        return await reader.readexactly(size), size
    left = size
    while left:
        left -= len(await reader.readexactly(min(left, 65536)))
    return None, size


async def read_chunked(reader: asyncio.StreamReader, cap: int) -> tuple[bytes | None, int]:
    pieces: list[bytes] = []
    size = 0
    while True:
        length = int((await reader.readline()).split(b";")[0], 16)
        piece = await reader.readexactly(length)
        await reader.readline()
        if not length:
            return (b"".join(pieces) if size <= cap else None), size
        size += length
        if size <= cap:
            pieces.append(piece)
