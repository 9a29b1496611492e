"""A run's events as an answer: streamed, replayed from a cursor, or gathered into one body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents.events import LogGone, read_events
from agents.models import Run, Step
from agents.policies import rights, rows
from agents.views.replies import Send
from agents.wire.chunks import NOT_TOKENS, Chunk, Renderer, ping
from agents.wire.messages import View, as_seen
from lettaweb.lib import drain, sse
from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem

WRITE = 64 * 1024  # characters in one write
ERROR_STATUS = {
    "bad_request": 400,
    "authentication": 401,
    "insufficient_credits": 402,
    "rate_limit": 429,
    "timeout": 504,
    "context_overflow": 400,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader of a stream wants."""

    tokens: bool
    view: View
    after: int = 0
    hidden: set[str] = field(default_factory=set)
    first_ping: bool = False
    pings: bool = True


def view_of(options: Mapping[str, Any]) -> View:
    types = options.get("include_return_message_types")
    return View(
        use_assistant_message=bool(options.get("use_assistant_message", True)),
        tool_name=str(options.get("assistant_message_tool_name") or "send_message"),
        tool_argument=str(options.get("assistant_message_tool_kwarg") or "message"),
        types=frozenset(types) if types is not None else None,
    )


# --- finding -----------------------------------------------------------------------------------------


def find_run(user: Any, wire: str) -> tuple[Run, set[str]]:
    """The run, and the uuids of messages in its log that were superseded."""
    _may_view(user)
    run = rows.run(wire)
    if run.events_dropped:
        raise Problem(410, "The events of this run are not kept any more.")
    return run, superseded(run)


def find_conversation_run(user: Any, wire: str, body: Any) -> tuple[Run, set[str]]:
    """The run that a conversation's reader means: the one named, the one with the otid, the active or last one."""
    _may_view(user)
    given: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    conversation = rows.conversation(wire, str(given.get("agent_id") or ""))
    runs = Run.objects.filter(conversation=conversation).order_by("-pk")
    if given.get("run_id"):
        return find_run(user, str(given["run_id"]))
    if given.get("otid"):
        runs = runs.filter(messages__otid=str(given["otid"]))
    found = runs.first()
    if found is None:
        raise Problem(404, "No run found in this conversation")
    return find_run(user, found.wire_id)


def superseded(run: Run) -> set[str]:
    if run.epoch <= 1:
        return set()
    lists = Step.objects.filter(run=run, attempt__gt=1).values_list("superseded", flat=True)
    return {uid for superseded_ids in lists for uid in superseded_ids}


def _may_view(user: Any) -> None:
    if not rights.can(user, rights.VIEW):
        raise Problem(403, "You may not read runs")


def cursor(body: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> int:
    """Where a reader left off: starting_after, else Last-Event-ID; a :class:`Problem` 422 for a bad one."""
    given = body.get("starting_after")
    if given is None:
        text = headers.get(b"last-event-id", b"0").decode("latin-1")
        given = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**62:
        raise Problem(422, "starting_after: a whole number from 0 is expected")
    return given


# --- streaming ---------------------------------------------------------------------------------------


async def stream(run: Run, wanted: Wanted, receive: Callable[[], Awaitable[Mapping[str, Any]]], send: Send) -> None:
    """Send the run's events as SSE until it ends, the client leaves, or this process stops."""
    await send({"type": "http.response.start", "status": 200, "headers": sse.HEADERS})
    opening = sse.OPENING
    if wanted.first_ping:
        opening += sse.frame(dumps(ping(run.wire_id, wanted.after or None)))
    await send({"type": "http.response.body", "body": opening.encode(), "more_body": True})
    telling = asyncio.ensure_future(_tell(run, wanted, send))
    leaving = asyncio.ensure_future(_gone(receive))
    stopping = asyncio.ensure_future(drain.wait())
    try:
        await asyncio.wait([telling, leaving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stopping.done() and not telling.done():
            await asyncio.wait([telling, leaving], timeout=1.0)
        if telling.done():
            telling.result()
        if not leaving.done():
            await send({"type": "http.response.body", "body": b""})
    finally:
        for task in (telling, leaving, stopping):
            task.cancel()


async def _gone(receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _tell(run: Run, wanted: Wanted, send: Send) -> None:
    renderer = Renderer(run.wire_id, wanted.tokens, wanted.view, set(wanted.hidden))
    last = wanted.after
    try:
        async with aclosing(read_events(run.pk, last, silence=settings.LETTAWEB_PING_SECONDS)) as events:
            async for batches in events:
                if not batches:
                    await _send_text(send, _silence(run, last, wanted))
                    continue
                last = batches[-1].last
                for frames in _together(renderer.chunks(batches)):
                    await _send_text(send, frames)
    except LogGone:
        await _send_text(send, _frame(dumps(_gone_error(run)), error=True))
    await _send_text(send, sse.DONE)


def _together(chunks: Iterable[Chunk]) -> Iterator[str]:
    """The frames of ``chunks`` in writes of bearable size: a reader that is slow must not make us hold them all."""
    frames, size = [], 0
    for chunk in chunks:
        frames.append(_frame(chunk.text, error=chunk.error))
        size += len(chunk.text)
        if size > WRITE:
            yield "".join(frames)
            frames, size = [], 0
    if frames:
        yield "".join(frames)


def _frame(text: str, *, error: bool) -> str:
    return sse.error_frame(text) if error else sse.frame(text)


def _silence(run: Run, last: int, wanted: Wanted) -> str:
    return sse.frame(dumps(ping(run.wire_id, last or None))) if wanted.pings else sse.SILENCE


async def _send_text(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


def _gone_error(run: Run) -> dict[str, Any]:
    return {
        "message_type": "error_message",
        "run_id": run.wire_id,
        "error_type": "stream_incomplete",
        "message": "The events of this run are not kept any more.",
        "detail": "",
        "seq_id": None,
    }


# --- one body ----------------------------------------------------------------------------------------


async def whole(run: Run, view: View) -> tuple[int, dict[str, Any]]:
    """Wait for the run's end: the status and body of a request that does not stream."""
    messages: list[dict[str, Any]] = []
    ending: dict[str, Any] = {}
    async for batches in read_events(run.pk):
        for batch in batches:
            for event in batch.events:
                if event[0] == "m" and event[2] <= NOT_TOKENS:
                    messages.extend({**shown, "seq_id": None} for shown in as_seen(event[1], view))
                elif event[0] in ("stop", "error", "usage"):
                    ending[event[0]] = event[1]
    error = ending.get("error")
    if error and error["type"] != "max_tokens_exceeded":
        return ERROR_STATUS.get(error.get("kind", ""), 500 if error["type"] == "internal_error" else 502), {
            "error": {"type": error["type"], "message": error["message"], "detail": error.get("detail") or None}
        }
    return 200, _letta_response(messages, ending.get("stop", "error"), ending.get("usage", {}))


def _letta_response(messages: list[dict[str, Any]], stop: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "messages": messages,
        "stop_reason": {"message_type": "stop_reason", "stop_reason": stop},
        "usage": usage,
        "logprobs": None,
        "turns": None,
    }


def parked(run: Run) -> dict[str, Any]:
    """What a decision on a batch's call answers at once: the run goes on in the batch."""
    usage = {"message_type": "usage_statistics", "completion_tokens": 0, "prompt_tokens": 0, "total_tokens": 0}
    return _letta_response([], "end_turn", {**usage, "step_count": 0, "run_ids": [run.wire_id]})
