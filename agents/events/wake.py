"""Wake-ups across processes. They carry pointers only and may get lost: every listener also looks by itself.

PostgreSQL: NOTIFY in the writing transaction, one LISTEN connection per process. SQLite: while somebody
here follows a run that is executed elsewhere, ``PRAGMA data_version`` is asked every 20 ms; while somebody
only waits for other changes (an open desk), every second.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction

from agents.events.hub import hub

CHANNEL = "lettaweb"
POLL = 0.02  # seconds
POLL_SLOWLY = 1.0
ONLY_LISTENERS = ("approvals", "courses")  # kinds that concern neither executors nor readers of a run
_RUNS = (
    "SELECT (SELECT max(id) FROM agents_run), count(*), sum(id), sum(status = 'running') FROM agents_run "
    "WHERE status IN ('created', 'running')"
)
log = structlog.get_logger(__name__)


def announce(kind: str, *numbers: int) -> None:
    """Say in the current transaction that ``kind`` (see :meth:`Waker.heard`) of rows ``numbers`` changed."""
    if numbers and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            said = [f"{kind}:{number}" for number in numbers]
            cursor.execute("SELECT pg_notify(%s, said) FROM unnest(%s::text[]) AS said", [CHANNEL, said])


def announce_here(kind: str, number: int) -> None:
    """After the current transaction commits, tell the executor and the readers of this process."""
    transaction.on_commit(lambda: waker.heard(kind, number))


def tell_approvals(conversation_id: int) -> None:
    """In the current transaction a call of the conversation began or ceased to wait, or looks different."""
    announce("approvals", conversation_id)
    announce_here("approvals", conversation_id)


def tell_course(agent_id: int) -> None:
    """In the current transaction a run of the agent began or ended."""
    announce("courses", agent_id)
    announce_here("courses", agent_id)


class Waker:
    """Hears wake-ups and passes them to the hub and to ``on_runs`` on the event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poll: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._listeners: dict[asyncio.Event, tuple[str, int]] = {}
        self._hurry = asyncio.Event()
        self.on_runs: Callable[[int], None] = lambda number: None
        self.on_cancelled: Callable[[int], None] = lambda number: None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stop.clear()
        if connection.vendor == "postgresql":
            self._thread = threading.Thread(target=self._listen, name="wake-listen", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._poll is not None:
            self._poll.cancel()
        self._loop = None

    def heard(self, kind: str, number: int) -> None:
        """Pass a wake-up on; may be called from any thread.

        Kinds: events and runs (number: a run), cancelled (a run), approvals (a conversation), courses (an
        agent); number 0 means any of them.
        """
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell, kind, number)

    def _tell(self, kind: str, number: int) -> None:
        for changed, (wanted, row) in self._listeners.items():
            if wanted == kind and (number == row or not number or not row):
                changed.set()
        if kind in ONLY_LISTENERS:
            return
        hub.wake(number)
        if kind == "runs":
            self.on_runs(number)
        elif kind == "cancelled":
            self.on_cancelled(number)

    @contextmanager
    def listening(self, kind: str, row: int = 0) -> Iterator[asyncio.Event]:
        """An event that is set, on the running loop, whenever ``kind`` of ``row`` (0: any) may have changed."""
        changed = asyncio.Event()
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        self._listeners[changed] = (kind, row)
        self.need()
        try:
            yield changed
        finally:
            del self._listeners[changed]

    def need(self) -> None:
        """Somebody on the running loop follows what may be written elsewhere."""
        if self._thread is not None or connection.vendor != "sqlite":
            return
        loop = asyncio.get_running_loop()
        if self._poll is None or self._poll.done() or self._poll.get_loop() is not loop:
            self._hurry = asyncio.Event()
            self._poll = loop.create_task(self._poll_sqlite(self._hurry))
        elif hub.foreign():
            self._hurry.set()

    async def _poll_sqlite(self, hurry: asyncio.Event) -> None:
        watched = sqlite3.connect(f"file:{settings.DATABASES['default']['NAME']}?mode=ro", uri=True, timeout=1)
        try:
            seen: Any = None
            runs: Any = None
            while hub.foreign() or self._listeners:
                version = watched.execute("PRAGMA data_version").fetchone()
                if version != seen:
                    before, seen, runs = runs, version, watched.execute(_RUNS).fetchone()
                    self._all_look_here(courses=runs != before)
                await _pause(hurry, POLL if hub.foreign() else POLL_SLOWLY)
        finally:
            watched.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen_once()
            except Exception as error:  # the database may be away for a while
                log.info("wake_ups_lost", error=str(error)[:200])
                self._stop.wait(1.0)

    def _listen_once(self) -> None:
        import psycopg

        parameters = connection.get_connection_params()
        for ours in ("cursor_factory", "context", "prepare_threshold", "autocommit"):
            parameters.pop(ours, None)
        with psycopg.connect(**parameters, autocommit=True) as listening:
            listening.execute(f"LISTEN {CHANNEL}")
            self._all_look_again()
            while not self._stop.is_set():
                for note in listening.notifies(timeout=5.0):
                    kind, _, number = note.payload.partition(":")
                    self.heard(kind, int(number))

    def _all_look_here(self, *, courses: bool) -> None:
        """Something was committed, perhaps by us; ``courses``: a run began or ended with it."""
        for run_id in hub.foreign():
            hub.wake(run_id)
        for changed, (kind, _) in self._listeners.items():
            if courses or kind != "courses":
                changed.set()

    def _all_look_again(self) -> None:
        for run_id in list(hub.tails):
            self.heard("events", run_id)
        for kind in ONLY_LISTENERS:
            self.heard(kind, 0)


async def _pause(hurry: asyncio.Event, seconds: float) -> None:
    hurry.clear()
    try:
        await asyncio.wait_for(hurry.wait(), seconds)
    except TimeoutError:
        return


waker = Waker()
