"""Takes connections, logs each request, finds its route, and sees that a mistake here shows as a refusal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from typing import Any

from tests.scripted import anthropic_routes, control, openai_routes
from tests.scripted.exchange import Exchange
from tests.scripted.http import Reply, Request, serve_connection
from tests.scripted.refusals import Refused
from tests.scripted.routes import ANTHROPIC, OPENAI, find_route, is_openai
from tests.scripted.world import World

Json = Any


async def handle(world: World, request: Request, reply: Reply) -> None:
    """Answer one request of either vendor, or of the tests."""
    if request.path.startswith("/_control/"):
        await control.handle(world, request, reply)
        return
    entry = world.log.add(request, peek(request))
    vendor = openai_routes if is_openai(request) else anthropic_routes
    reply.extra = {"x-request-id" if vendor is openai_routes else "request-id": f"req_{secrets.token_hex(12)}"}
    exchange = Exchange(world, request, reply, entry, vendor.ERRORS)
    reply.course = entry
    try:
        await answer(exchange)
    except ConnectionError:
        entry.outcome = "gone"
        raise
    finally:
        world.log.settle(entry)


async def answer(exchange: Exchange) -> None:
    request, world = exchange.request, exchange.world
    vendor, table = (openai_routes, OPENAI) if is_openai(request) else (anthropic_routes, ANTHROPIC)
    try:
        vendor.check_headers(world, request.headers)
        route = find_route(table, request)
        if request.body is None:
            raise Refused("Request exceeds the maximum size", status=413, kind="request_too_large")
        await route(exchange)
    except Refused as error:
        await exchange.refuse(error)
    except (ConnectionError, asyncio.IncompleteReadError):
        raise
    except Exception as error:  # a rule of a test, or a mistake here: the test must see it
        failure = Refused(f"the scripted provider failed: {error!r}", status=500, kind="api_error")
        await exchange.refuse(failure)


def peek(request: Request) -> Json:
    """The body for the log: parsed when it is JSON, else None."""
    with contextlib.suppress(ValueError):
        return json.loads(request.body or b"")
    return None


async def start_server(world: World, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
    """Listen on loopback. Port 0 takes a free one."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        world.connections.add(task)

        async def answer_busily(request: Request, reply: Reply) -> None:
            world.busy.add(task)
            try:
                await handle(world, request, reply)
            finally:
                world.busy.discard(task)

        try:
            await serve_connection(reader, writer, answer_busily, body_cap)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            world.connections.discard(task)

    def body_cap(method: str, path: str) -> int:
        settings = world.settings
        return {"/v1/messages/batches": settings.batch_bytes, "/v1/files": settings.file_bytes}.get(
            path, settings.message_bytes
        )

    return await asyncio.start_server(connected, host, port, limit=256 * 1024, backlog=1024)
