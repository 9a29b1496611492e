"""The routes that every message takes, as a raw ASGI application ahead of Django.

A request starts a run (or finds one) and then only reads its events: a client that leaves ends nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.actions.begin import Started
from agents.actions.requests import MessageRequest
from agents.actions.send import send
from agents.executor import pool
from agents.models import Conversation
from agents.policies import rights, rows
from agents.policies.guard import Caller, guard, read_body
from agents.serializers.requests import invalid, message_request
from agents.views import replay
from agents.views.replies import Send, send_json, send_problem
from agents.wire.runs import run_state
from lettaweb.lib import json
from lettaweb.lib.db import in_db
from lettaweb.lib.drain import draining
from lettaweb.lib.faults import reach
from lettaweb.lib.problems import Problem

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

_ROUTE = re.compile(
    r"/(?:v1|latest)/(?:"
    r"agents/(?P<agent>[^/]+)/messages(?P<mode>/stream|/async)?"
    r"|conversations/(?P<conversation>[^/]+)/(?P<what>messages|stream)"
    r"|runs/(?P<run>[^/]+)/stream"
    r")/?"
)


def matches(scope: Mapping[str, Any]) -> bool:
    return scope["method"] == "POST" and _ROUTE.fullmatch(scope["path"]) is not None


async def application(scope: Mapping[str, Any], receive: Receive, send_: Send) -> None:
    found = _ROUTE.fullmatch(scope["path"])
    assert found is not None
    try:
        raw = await read_body(receive)
        caller = await guard(scope, raw)
        await _route(found, _Visit(scope, receive, send=send_, caller=caller, body=_body(raw)))
    except Problem as problem:
        await send_problem(send_, problem)


@dataclass(frozen=True, slots=True)
class _Visit:
    """One request on its way through: who came, with what, and where the answer goes."""

    scope: Mapping[str, Any]
    receive: Receive
    send: Send
    caller: Caller
    body: Any

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.scope["headers"])


def _body(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw.strip() else {}
    except json.BadJson as error:
        raise Problem(422, f"body: {error}") from None


async def _route(found: re.Match[str], visit: _Visit) -> None:
    if found["run"]:
        await _resume(visit, found["run"])
    elif found["what"] == "stream":
        await _resume_conversation(visit, found["conversation"])
    elif found["conversation"]:
        streaming = visit.body.get("streaming", True) if isinstance(visit.body, Mapping) else True
        await _message(visit, message_request(visit.body, streaming=bool(streaming)), found)
    elif found["mode"] == "/async":
        await _message(visit, message_request(visit.body, streaming=True), found)
    else:
        await _message(visit, message_request(visit.body, streaming=True if found["mode"] else None), found)


async def _message(visit: _Visit, request: MessageRequest, found: re.Match[str]) -> None:
    if draining():
        raise Problem(503, "The server is about to restart; please try again.", headers={"Retry-After": "1"})
    # Whoever leaves now must not leave a run behind that nobody drives.
    started = await asyncio.shield(_started(visit, request, found))
    await _answer(visit, request, started, is_async=found["mode"] == "/async")


async def _started(visit: _Visit, request: MessageRequest, found: re.Match[str]) -> Started:
    owner = pool.reserve()
    try:
        started = await in_db(_start, visit, request, (found, owner))
        reach("started")
        if started.mine:
            pool.adopt(started.fence, started.first)
    finally:
        if owner is not None:
            pool.unreserve()
    return started


def _start(visit: _Visit, request: MessageRequest, place: tuple[re.Match[str], Any]) -> Started:
    found, owner = place
    if not rights.can(visit.caller.user, rights.SEND):
        raise Problem(403, "You may not send messages")
    conversation = _conversation(found, visit.body)
    return send(conversation, request, actor=visit.caller.user, owner=owner)


def _conversation(found: re.Match[str], body: Any) -> Conversation:
    if found["agent"]:
        return rows.default_conversation(rows.agent(found["agent"]))
    agent_id = body.get("agent_id") or ""
    if not isinstance(agent_id, str):
        raise invalid("agent_id", "a text is expected")
    return rows.conversation(found["conversation"], agent_id)


async def _answer(visit: _Visit, request: MessageRequest, started: Started, *, is_async: bool) -> None:
    run = started.run
    batch = [(b"x-lettaweb-continues", b"batch")] if run.driver == "batch" else []
    if is_async:
        await send_json(visit.send, 200, run_state(run), headers=batch)
    elif request.streaming:
        wanted = replay.Wanted(
            tokens=bool(request.options.get("stream_tokens")),
            view=replay.view_of(request.options),
            first_ping=_wants_first_ping(visit, request),
            pings=request.include_pings is not False,
        )
        await replay.stream(run, wanted, visit.receive, visit.send)
    elif batch:
        await send_json(visit.send, 200, replay.parked(run), headers=batch)
    else:
        status, body = await replay.whole(run, replay.view_of(request.options))
        headers = [(b"x-should-retry", b"false")] if status >= 400 else []
        await send_json(visit.send, status, body, headers=headers)


def _wants_first_ping(visit: _Visit, request: MessageRequest) -> bool:
    """Clients from 1.7 on learn the run's id from a first ping; older ones break on it."""
    version = visit.headers.get(b"x-stainless-package-version", b"").decode("latin-1").split(".")
    try:
        new = (int(version[0]), int(version[1])) >= (1, 7)
    except (ValueError, IndexError):
        new = False
    on_messages = not visit.scope["path"].rstrip("/").endswith("/stream")
    return (new and on_messages and request.background) or (request.include_pings is True and request.background)


# --- coming back -------------------------------------------------------------------------------------


async def _resume(visit: _Visit, wire: str) -> None:
    run, hidden = await in_db(replay.find_run, visit.caller.user, wire)
    await _stream_again(visit, run, hidden)


async def _resume_conversation(visit: _Visit, wire: str) -> None:
    run, hidden = await in_db(replay.find_conversation_run, visit.caller.user, wire, visit.body)
    await _stream_again(visit, run, hidden)


async def _stream_again(visit: _Visit, run: Any, hidden: set[str]) -> None:
    body = visit.body if isinstance(visit.body, Mapping) else {}
    wanted = replay.Wanted(
        tokens=bool(run.options.get("stream_tokens")),
        view=replay.view_of(run.options),
        after=replay.cursor(body, visit.headers),
        hidden=hidden,
        pings=body.get("include_pings") is not False,
    )
    await replay.stream(run, wanted, visit.receive, visit.send)
