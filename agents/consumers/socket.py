"""One websocket: frames in and out, a bounded wait for slow readers, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qs

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model

from agents.policies.rights import VIEW, can
from lettaweb.lib import drain, json
from lettaweb.lib.db import in_db_read
from lettaweb.lib.problems import Problem

HEARTBEAT = 20.0  # seconds of silence before a ping
RIGHTS_SECONDS = 60.0  # between two looks whether the user may still read
MAX_FRAME = 64 * 1024  # characters of a client's frame
OVER, MISTAKE, RESTART, BAD_ADDRESS, NOT_ALLOWED, UNKNOWN, TOO_SLOW = 1000, 1011, 1012, 4400, 4403, 4404, 4408

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Answer = Callable[[Mapping[str, Any]], Awaitable[None]]
log = structlog.get_logger(__name__)


class Closed(Exception):
    """The socket ends: with ``code``, or because the client is gone (0)."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code


class BadFrame(Exception):
    """A frame that cannot be used; told to the client with its ``code``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Socket:
    """A websocket of a known user. What it says waits for the reader; nothing is queued for a slow one."""

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self.user: Any = scope["user"]
        self.named: Mapping[str, str] = scope.get("url_route", {}).get("kwargs", {})
        self.query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
        self._receive, self._send = receive, send
        self._sending = asyncio.Lock()
        self._said = asyncio.get_running_loop().time()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    # --- saying ---

    async def tell(self, kind: str, **fields: Any) -> None:
        """Send one frame; raises :class:`Closed` when the reader is gone or does not keep up."""
        await self.tell_text(json.dumps({"type": kind, **fields}))

    async def tell_text(self, text: str) -> None:
        async with self._sending:
            try:
                # Half of what the server allows: the other half is for the close code to arrive.
                async with asyncio.timeout(settings.LETTAWEB_READER_SECONDS / 2):
                    await self._send({"type": "websocket.send", "text": text})
            except TimeoutError:
                log.warning("reader_too_slow", user=self.user.pk)
                raise Closed(TOO_SLOW) from None
            except (OSError, RuntimeError):
                raise Closed from None
            self._said = asyncio.get_running_loop().time()

    # --- the whole course ---

    async def serve(self, work: Coroutine[Any, Any, None], answer: Answer) -> None:
        """Run ``work`` and pass frames to ``answer`` until the first of everything ends; then tidy up."""
        for job in (work, self._listen(answer), self._heartbeat(), self._rights(), self._draining()):
            self._start(job).add_done_callback(self._ended)
        code = 0
        try:
            code = await self._ending
        finally:
            await self._tidy()
            await self._close(code)

    def spawn_beside(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``job`` beside the work: the socket outlives it, but not its failure."""
        task = self._start(job)
        task.add_done_callback(self._failed)
        return task

    def _start(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._end(OVER)
        else:
            self._failed(task)

    def _failed(self, task: asyncio.Task[None]) -> None:
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, Closed):
            self._end(error.code)
        elif error is not None:
            log.error("socket_failed", exc_info=error)
            self._end(MISTAKE)

    def _end(self, code: int) -> None:
        if not self._ending.done():
            self._ending.set_result(code)

    async def _tidy(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _close(self, code: int) -> None:
        if not code:
            return
        try:
            async with asyncio.timeout(1.0):
                await self._send({"type": "websocket.close", "code": code})
        except (TimeoutError, OSError, RuntimeError):
            return

    async def _listen(self, answer: Answer) -> None:
        while (message := await self._receive())["type"] != "websocket.disconnect":
            try:
                frame = _frame(message)
                if frame["type"] == "ping":
                    await self.tell("pong")
                elif frame["type"] != "pong":
                    await answer(frame)
            except BadFrame as error:
                await self.tell("error", code=error.code, message=str(error))
            except Problem as problem:
                await self.tell("error", code=_CODES.get(problem.status, "refused"), message=str(problem.detail))
        raise Closed

    async def _heartbeat(self) -> None:
        while True:
            silent = asyncio.get_running_loop().time() - self._said
            if silent >= HEARTBEAT:
                await self.tell("ping")
                silent = 0.0
            await asyncio.sleep(HEARTBEAT - silent)

    async def _rights(self) -> None:
        while True:
            await asyncio.sleep(RIGHTS_SECONDS)
            if not await in_db_read(_may_read, self.user.pk):
                raise Closed(NOT_ALLOWED)

    async def _draining(self) -> None:
        await drain.wait()
        raise Closed(RESTART)


_CODES = {403: "not_allowed", 404: "unknown", 410: "gone", 422: "bad_field"}


async def opened(scope: Mapping[str, Any], receive: Receive, send: Send) -> Socket | None:
    """The accepted socket of the guarded ``scope``; None when the client left at once."""
    if (await receive())["type"] != "websocket.connect":
        return None
    await send({"type": "websocket.accept"})
    return Socket(scope, receive, send)


async def refuse(send: Send, problem: Problem) -> None:
    """Close an accepted socket for ``problem``, with the code that stands for its status."""
    codes = {403: NOT_ALLOWED, 404: UNKNOWN, 422: UNKNOWN}
    await send({"type": "websocket.close", "code": codes.get(problem.status, BAD_ADDRESS)})


def text_of(frame: Mapping[str, Any], name: str) -> str:
    """The text ``name`` of a frame; :class:`BadFrame` without one."""
    value = frame.get(name)
    if not isinstance(value, str) or not value or len(value) > 200:
        raise BadFrame("bad_field", f"{name}: a text is expected")
    return value


def cursor_of(value: Any) -> int:
    """A number of an event, as a number or as text; :class:`BadFrame` for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise BadFrame("bad_field", "after: a whole number from 0 is expected")
    return value


def _frame(message: Mapping[str, Any]) -> dict[str, Any]:
    text = message.get("text")
    if text is None:
        raise BadFrame("binary", "binary frames are not understood; send JSON as text")
    if len(text) > MAX_FRAME:
        raise BadFrame("too_large", f"a frame may have at most {MAX_FRAME} characters")
    try:
        frame = json.loads(text.encode("utf-8", "replace"))
    except json.BadJson as error:
        raise BadFrame("bad_json", str(error)) from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise BadFrame("bad_frame", "a JSON object with a type is expected")
    return frame


def _may_read(user_pk: int) -> bool:
    user = get_user_model().objects.filter(pk=user_pk, is_active=True).first()
    return user is not None and can(user, VIEW)
