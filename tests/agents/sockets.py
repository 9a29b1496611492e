"""Websockets without a server: an ASGI client that connects, reads frames as JSON, and leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator

from agents.routing import websocket_urlpatterns

SECONDS = 20.0
application: Any = URLRouter(websocket_urlpatterns)


class Reader:
    """One connected socket of a user."""

    def __init__(self, communicator: Any) -> None:
        self.raw = communicator

    async def frame(self) -> dict[str, Any]:
        """The next frame; AssertionError when the socket closes instead."""
        message = await self.raw.receive_output(SECONDS)
        assert message["type"] == "websocket.send", message
        found: dict[str, Any] = json.loads(message["text"])
        return found

    async def until(self, kind: str) -> dict[str, Any]:
        """The next frame of a type; those before it are skipped."""
        while (found := await self.frame())["type"] != kind:
            continue
        return found

    async def code(self) -> int:
        """The code that the socket closes with; frames before that are skipped."""
        while (message := await self.raw.receive_output(SECONDS))["type"] != "websocket.close":
            continue
        return int(message["code"])

    async def say(self, frame: Any) -> None:
        await self.raw.send_to(text_data=frame if isinstance(frame, str) else json.dumps(frame))

    async def say_raw(self, message: dict[str, Any]) -> None:
        await self.raw.send_input({"type": "websocket.receive", **message})

    async def silent(self, seconds: float = 0.3) -> bool:
        return bool(await self.raw.receive_nothing(timeout=seconds))

    async def leave(self) -> None:
        await self.raw.disconnect(timeout=SECONDS)


@asynccontextmanager
async def connected(path: str, user: Any) -> AsyncIterator[Reader]:
    """A socket on ``path`` as ``user``, whom the guard has let in."""
    communicator = WebsocketCommunicator(application, path)
    communicator.scope["user"] = user
    accepted, _ = await communicator.connect(SECONDS)
    assert accepted
    reader = Reader(communicator)
    try:
        yield reader
    finally:
        if not communicator.future.done():
            await reader.leave()


async def eventually(holds: Callable[[], bool | Awaitable[bool]], seconds: float = SECONDS) -> None:
    """Wait until ``holds()``; AssertionError when it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < deadline:
        found = holds()
        if await found if isinstance(found, Awaitable) else found:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to be")
