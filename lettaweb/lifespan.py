"""Start and end of the work that a web process does beside answering: the executor of runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import structlog
from django.conf import settings

from lettaweb.lib import drain
from lettaweb.lib.db import close_pools

log = structlog.get_logger(__name__)


async def start() -> None:
    """Start the executor on the running loop."""
    if find_spec("agents.executor"):
        await import_module("agents.executor").start()


async def stop() -> None:
    """Take no new runs, let the running ones come to a point where another process can go on; then end."""
    drain.begin()
    if find_spec("agents.executor"):
        await import_module("agents.executor").drain(settings.LETTAWEB_DRAIN_SECONDS)
    close_pools()


async def application(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], send: Callable[[Mapping[str, Any]], Awaitable[None]]
) -> None:
    """ASGI lifespan, for servers that speak it (uvicorn)."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await start()
            except Exception as error:
                log.error("start_failed", exc_info=error)
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
