"""The server: finds the route of a request, and runs the loop in a thread of the test process or in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.scripted import anthropic_routes, control, openai_routes
from tests.scripted.answers import Answer
from tests.scripted.conversation import Conversation
from tests.scripted.exchange import Exchange, Route
from tests.scripted.http import Reply, Request, serve_connection
from tests.scripted.log import Received
from tests.scripted.refusals import Refused
from tests.scripted.world import Settings, World

Json = Any
Value = TypeVar("Value")

ANTHROPIC: list[tuple[str, str, Route]] = [
    ("POST", r"/v1/messages", anthropic_routes.create_message),
    ("POST", r"/v1/messages/count_tokens", anthropic_routes.count_tokens),
    ("GET", r"/v1/models", anthropic_routes.list_models),
    ("GET", r"/v1/models/[^/]+", anthropic_routes.retrieve_model),
]
OPENAI: list[tuple[str, str, Route]] = [
    ("POST", r"/v1/chat/completions", openai_routes.create_completion),
    ("GET", r"/v1/models", openai_routes.list_models),
    ("GET", r"/v1/models/[^/]+", openai_routes.retrieve_model),
]
OPENAI_ONLY = ("/v1/chat/", "/v1/files", "/v1/batches")


def is_openai(request: Request) -> bool:
    """Which vendor a request means: by its path, else by the headers that only Anthropic's clients send."""
    if request.path.startswith(OPENAI_ONLY):
        return True
    if request.path.startswith("/v1/messages"):
        return False
    return not {"x-api-key", "anthropic-version"} & request.headers.keys()


def find_route(table: list[tuple[str, str, Route]], request: Request) -> Route:
    """The route of a request. Raises Refused (404) for none."""
    for method, pattern, route in table:
        if method == request.method and re.fullmatch(pattern, request.path):
            return route
    raise Refused(f"Unknown request URL: {request.method} {request.path}", status=404, kind="not_found_error")


async def handle(world: World, request: Request, reply: Reply) -> None:
    """Answer one request of either vendor, or of the tests."""
    if request.path.startswith("/_control/"):
        await control.handle(world, request, reply)
        return
    entry = world.log.add(request, peek(request))
    vendor = openai_routes if is_openai(request) else anthropic_routes
    reply.extra = {"x-request-id" if vendor is openai_routes else "request-id": f"req_{secrets.token_hex(12)}"}
    exchange = Exchange(world, request, reply, entry, vendor.ERRORS)
    try:
        await answer(exchange)
        entry.outcome = "finished" if entry.outcome == "open" else entry.outcome
    finally:
        outcome = "gone" if entry.outcome == "open" else entry.outcome
        world.log.settle(entry, status=reply.status, outcome=outcome)


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


class ScriptedProvider:
    """The server in a thread of this process, with the controls that tests use."""

    def __init__(self) -> None:
        self.world = World()
        self.loop = asyncio.new_event_loop()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="scripted-provider", daemon=True)

    # --- its life -----------------------------------------------------------------------------

    def start(self) -> ScriptedProvider:
        self._thread.start()
        server = self._on_loop(start_server(self.world))
        self._server, self.port = server, server.sockets[0].getsockname()[1]
        return self

    def stop(self) -> None:
        """Drop all connections and end the thread."""
        self._on_loop(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    def reset(self) -> None:
        """Back to the start: no script, no log, default settings, no answer under way."""

        async def on_loop() -> None:
            self.world.reset()

        self._on_loop(on_loop())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the two SDKs find this server."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-ant-test-key",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-test-key",
        }

    # --- what it answers ----------------------------------------------------------------------

    def script(self, marker: str, *answers: Answer, model: str = "", last: bool = False) -> None:
        """Queue answers for requests that hold ``marker`` in any text (``last``: in the last user message) or in the API
        key; "" fits every request. Requests beyond the queue get the default model's answers."""
        self.world.script.add(*answers, marker=marker, model=model, last=last)

    def script_route(self, pattern: str, *answers: Answer) -> None:
        """Queue answers for a file, batch or model route: "GET /v1/messages/batches/*"."""
        self.world.script.add_route(pattern, *answers)

    def rule(self, function: Callable[[Conversation], Answer | None]) -> None:
        self.world.script.add_rule(function)

    def release(self, hold: str) -> None:
        """Let the answers held under this name go on."""
        self.loop.call_soon_threadsafe(lambda: self.world.holds.gate(hold).set())

    def await_held(self, hold: str, timeout: float = 5) -> None:
        """Wait until an answer stands at this gate. Raises TimeoutError."""
        self.world.log.wait_for(lambda _: hold in self.world.holds.waiting, timeout)

    @property
    def settings(self) -> Settings:
        return self.world.settings

    # --- what it saw --------------------------------------------------------------------------

    @property
    def requests(self) -> list[Received]:
        return list(self.world.log.requests)

    @property
    def generations(self) -> list[Received]:
        """The requests for an answer of a model, without models, counts, files and batches."""
        return [entry for entry in self.requests if entry.is_generation]

    @property
    def refused(self) -> list[str]:
        """Why requests were refused; [] when every request was valid."""
        return [f"{entry.method} {entry.path}: {entry.refusal}" for entry in self.requests if entry.refusal]

    @property
    def pending(self) -> int:
        """How many queued answers nobody has asked for."""
        return self.world.script.pending()

    def await_requests(self, count: int, timeout: float = 5) -> list[Received]:
        """The generations once there are ``count``. Raises TimeoutError."""
        self.world.log.wait_for(lambda found: sum(entry.is_generation for entry in found) >= count, timeout)
        return self.generations

    def await_outcome(self, outcome: str, count: int = 1, timeout: float = 5) -> list[Received]:
        """The requests with this outcome (finished, cut, gone) once there are ``count``. Raises TimeoutError."""
        self.world.log.wait_for(lambda found: sum(entry.outcome == outcome for entry in found) >= count, timeout)
        return [entry for entry in self.requests if entry.outcome == outcome]

    # --- its thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _on_loop(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self.world.connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
