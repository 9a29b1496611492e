"""Start and end of the work that a web process does beside answering: the executor of runs."""

from __future__ import annotations

import asyncio
import resource
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from django.conf import settings

from agents import executor
from lettaweb.lib import drain
from lettaweb.lib.db import close_pools

MANY_FILES = 65_536
log = structlog.get_logger(__name__)


async def start() -> None:
    """Start the executor on the running loop."""
    _allow_many_files()
    await executor.start()


def _allow_many_files() -> None:
    """Every stream takes two connections, and what a shell or systemd allows by itself is soon used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def stop() -> None:
    """Take no new runs, let the running ones come to a point where another process can go on; then end."""
    drain.begin()
    await executor.drain(settings.LETTAWEB_DRAIN_SECONDS)
    close_pools()


def _drain_at_signal() -> None:
    """Streams end when the process drains, and such a server waits for its streams before it says that it
    stops: so the drain begins with the signal."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        earlier = signal.getsignal(number)

        def on_signal(given: int, frame: Any, earlier: Any = earlier) -> None:
            loop.call_soon_threadsafe(drain.begin)
            if callable(earlier):
                earlier(given, frame)

        signal.signal(number, on_signal)


async def application(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], send: Callable[[Mapping[str, Any]], Awaitable[None]]
) -> None:
    """ASGI lifespan, for servers that speak it (uvicorn)."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await start()
                _drain_at_signal()
            except Exception as error:
                log.error("start_failed", exc_info=error)
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
