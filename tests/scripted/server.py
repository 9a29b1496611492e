"""The server in a thread of the test process, with the controls that tests use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from tests.scripted.answers import Answer
from tests.scripted.app import start_server
from tests.scripted.batch_rows import Batch, Ending
from tests.scripted.conversation import Conversation
from tests.scripted.endings import end_batch, fail_batch
from tests.scripted.log import Received
from tests.scripted.world import Settings, World

Value = TypeVar("Value")


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
        """Queue answers for requests that hold ``marker`` in any text or in the API key; "" fits every request.

        ``last``: in the last user message only. Requests beyond the queue get the default model's answers.
        """
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
        whole = [f"{entry.method} {entry.path}: {entry.refusal}" for entry in self.requests if entry.refusal]
        return whole + [f"{entry.path}: {item}" for entry in self.requests for item in entry.items]

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

    # --- batches ------------------------------------------------------------------------------

    def await_batches(self, count: int = 1, timeout: float = 5) -> list[str]:
        """The ids of the batches, oldest first, once ``count`` were created at either vendor. Raises TimeoutError."""
        self.world.log.wait_for(lambda _: len(self.batches) >= count, timeout)
        return [batch.id for batch in self.batches]

    @property
    def batches(self) -> list[Batch]:
        """The batches of both vendors, oldest first, deleted ones too."""
        found = [*self.world.message_batches.values(), *self.world.batches.values()]
        return sorted(found, key=lambda batch: batch.created)

    def end_batch(
        self,
        identifier: str,
        outcomes: Mapping[str, str] | None = None,
        *,
        default: str = "",
        raw: bytes | None = None,
        raw_errors: bytes | None = None,
        status: str = "",
    ) -> None:
        """End a batch now (see Ending). Raises KeyError for an unknown one."""
        ending = Ending(outcomes or {}, default, raw, raw_errors, status)

        async def on_loop() -> None:
            end_batch(self.world, identifier, ending)

        self._on_loop(on_loop())

    def fail_batch(self, identifier: str, code: str, message: str = "", line: int | None = None) -> None:
        """Fail an OpenAI batch in its validation, for a line of its file. Raises KeyError for an unknown one."""

        async def on_loop() -> None:
            fail_batch(self.world, identifier, code, message or code, line)

        self._on_loop(on_loop())

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
