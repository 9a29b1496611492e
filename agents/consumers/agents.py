"""``/ws/agents/<id>/``: the runs of an agent as they begin and end, and the events of those one subscribes to.

From us: ``hello`` {agent_id, runs, waiting}, ``run`` {run, waiting} when one began or ended, and for each
subscription the frames of :func:`~agents.consumers.reading.tell_run`. From a client: ``subscribe`` {run_id,
after}, ``unsubscribe`` {run_id}. ``?follow=1`` subscribes to the active runs and to each new one by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from agents.consumers.reading import reading_of, tell_run
from agents.consumers.socket import BadFrame, Receive, Send, Socket, cursor_of, opened, refuse, text_of
from agents.events.wake import waker
from agents.models import Run
from agents.models.run import ACTIVE
from agents.models.toolcall import calls_that_wait
from agents.policies import rows
from lettaweb.lib.db import in_db_read
from lettaweb.lib.problems import Problem

LOOK_AGAIN = 5.0  # seconds; the belt beside wake-ups
MOST = 20  # subscriptions of one socket
OVERLAP = 100  # rows: a run with a lower number may be committed later


async def agent_socket(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    socket = await opened(scope, receive, send)
    if socket is None:
        return
    try:
        agent = await in_db_read(rows.named_agent, socket.named["agent_id"])
    except Problem as problem:
        await refuse(send, problem)
        return
    feed = _Feed(socket, agent.pk, agent.wire_id, follow=socket.query.get("follow", ["0"])[-1] == "1")
    await socket.serve(feed.work(), feed.answer)


@dataclass(slots=True)
class _Feed:
    """What one socket knows of an agent: runs that were told, and what it is subscribed to."""

    socket: Socket
    agent_pk: int
    wire: str
    follow: bool
    told: dict[int, str] = field(default_factory=dict)
    readers: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def work(self) -> None:
        with waker.listening("courses", self.agent_pk) as changed:
            runs, waiting = await in_db_read(_active, self.agent_pk)
            self.told = {run.pk: run.status for run in runs}
            await self.socket.tell("hello", agent_id=self.wire, runs=[_brief(run) for run in runs], waiting=waiting)
            await self._follow([run for run in runs if run.active])
            newest = max(self.told, default=0)
            while True:
                try:
                    await asyncio.wait_for(changed.wait(), LOOK_AGAIN)
                except TimeoutError:
                    pass
                changed.clear()
                newest = await self._look(newest)

    async def _look(self, newest: int) -> int:
        runs, waiting = await in_db_read(
            _since, self.agent_pk, newest, [pk for pk, s in self.told.items() if s in ACTIVE]
        )
        news = [run for run in runs if self.told.get(run.pk) != run.status]
        for run in news:
            self.told[run.pk] = run.status
            await self.socket.tell("run", run=_brief(run), waiting=waiting)
        await self._follow(news)
        newest = max([newest, *(run.pk for run in runs)])
        self.told = {pk: status for pk, status in self.told.items() if status in ACTIVE or pk > newest - OVERLAP}
        return newest

    async def _follow(self, runs: list[Run]) -> None:
        for run in runs if self.follow else ():
            if run.wire_id not in self.readers and len(self.readers) < MOST:
                await self._subscribe(run.wire_id, 0)

    async def answer(self, frame: Mapping[str, Any]) -> None:
        if frame["type"] == "subscribe":
            await self._subscribe(text_of(frame, "run_id"), cursor_of(frame.get("after", 0)))
        elif frame["type"] == "unsubscribe":
            self._unsubscribe(text_of(frame, "run_id"))
        else:
            raise BadFrame("unknown_type", f"'{frame['type'][:40]}' is not understood here")

    async def _subscribe(self, wire: str, after: int) -> None:
        self._unsubscribe(wire)
        if len(self.readers) >= MOST:
            raise BadFrame("too_many", f"at most {MOST} runs can be followed at once")
        reading = await in_db_read(reading_of, wire, self.agent_pk)
        self.readers[wire] = self.socket.spawn_beside(tell_run(self.socket, reading, after=after))
        self.readers[wire].add_done_callback(lambda task: self._over(wire, task))

    def _over(self, wire: str, task: asyncio.Task[None]) -> None:
        if self.readers.get(wire) is task:
            del self.readers[wire]

    def _unsubscribe(self, wire: str) -> None:
        reader = self.readers.pop(wire, None)
        if reader is not None:
            reader.cancel()


def _active(agent_pk: int) -> tuple[list[Run], int]:
    """The agent's active runs and its last ended one, oldest first, and how many calls wait."""
    found = Run.objects.filter(agent_id=agent_pk).select_related("conversation")
    latest = list(found.order_by("-pk")[:1])
    active = [run for run in found.filter(status__in=ACTIVE).order_by("pk") if run not in latest]
    return [*active, *latest], _waiting(agent_pk)


def _since(agent_pk: int, newest: int, known: list[int]) -> tuple[list[Run], int]:
    wanted = Q(pk__gt=newest - OVERLAP) | Q(pk__in=known)
    found = Run.objects.filter(wanted, agent_id=agent_pk).select_related("conversation").order_by("pk")
    return list(found), _waiting(agent_pk)


def _waiting(agent_pk: int) -> int:
    return calls_that_wait().filter(agent_id=agent_pk).count()


def _brief(run: Run) -> dict[str, Any]:
    return {
        "id": run.wire_id,
        "status": run.status,
        "stop_reason": run.stop_reason,
        "conversation_id": run.conversation.wire_id,
        "driver": run.driver,
        "created_at": run.created_at.isoformat(),
        "completed_at": run.completed_at.isoformat() if run.completed_at else None,
        "error": (run.error or {}).get("message"),
    }
