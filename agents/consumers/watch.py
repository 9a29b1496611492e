"""What changed among the calls that wait: one look at the rows for all sockets of this process.

Wake-ups only say that something may have changed; what did comes from comparing the rows with those of
the look before. So nothing depends on who changed them, in which process, or on a wake-up that got lost.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError

from agents.actions.desk.find import rows
from agents.events.wake import waker
from agents.models import ToolCall
from agents.models.toolcall import WAITS, Outcome, calls_that_wait
from agents.wire.sentences import sentence, title
from lettaweb.lib.db import in_db_read

LOOK_AGAIN = 10.0  # seconds; the belt beside wake-ups
SHORTEST, LONGEST = 0.1, 1.0  # seconds between two looks: the longer a look takes, the fewer there are
KEEP = 4000  # changes that stay for sockets that are behind
AT_ONCE = 400
Change = dict[str, Any]
_STAMP = ("pk", "version", "held_by_id", "held_until", "overdue", "expires_at", "updated_at")
log = structlog.get_logger(__name__)


class QueueWatch:
    """The waiting calls as of the last look, and the changes since, numbered. Lives on one event loop."""

    def __init__(self) -> None:
        self.changes: deque[Change] = deque(maxlen=KEEP)
        self.last = 0
        self.waiting = 0
        self.ready = asyncio.Event()
        self._seen: dict[int, tuple[Any, ...]] = {}
        self._watchers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """An event that is set when there is a new change; the looks go on while somebody watches."""
        watcher = asyncio.Event()
        self._watchers.add(watcher)
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self.ready = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._work())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    def since(self, number: int) -> list[Change] | None:
        """The changes after ``number``; None when some of them are not here any more."""
        if number < self.last - len(self.changes):
            return None
        return [change for change in self.changes if change["n"] > number]

    async def _work(self) -> None:
        with waker.listening("approvals") as changed:
            while True:
                began = time.monotonic()
                changed.clear()
                await self._look_safely()
                await asyncio.sleep(min(LONGEST, max(SHORTEST, 5 * (time.monotonic() - began))))
                try:
                    await asyncio.wait_for(changed.wait(), LOOK_AGAIN)
                except TimeoutError:
                    continue

    async def _look_safely(self) -> None:
        """One look; whatever goes wrong, the next one finds what this one missed."""
        try:
            await self._look()
        except DatabaseError as error:
            log.warning("queue_not_seen", error=str(error)[:200])
        except Exception:
            log.exception("queue_not_seen")

    async def _look(self) -> None:
        now = await in_db_read(_stamps)
        before = self._seen if self.ready.is_set() else now
        moved = [pk for pk, stamp in now.items() if before.get(pk) != stamp] + [pk for pk in before if pk not in now]
        changes = [
            change
            for start in range(0, len(moved), AT_ONCE)
            for change in await in_db_read(_changes, moved[start : start + AT_ONCE], before)
        ]
        self._seen, self.waiting = now, len(now)
        self.ready.set()
        self._add(changes)

    def _add(self, changes: list[Change]) -> None:
        for change in changes:
            self.last += 1
            self.changes.append({"n": self.last, **change})
        for watcher in self._watchers if changes else ():
            watcher.set()


def _stamps() -> dict[int, tuple[Any, ...]]:
    found = calls_that_wait().values_list(*_STAMP)
    return {stamp[0]: stamp for stamp in found}


def _changes(keys: list[int], before: dict[int, tuple[Any, ...]]) -> list[Change]:
    return [change_of(call, before.get(call.pk)) for call in rows().filter(pk__in=keys).order_by("pk")]


def changes_for(shown: dict[UUID, int], newest: UUID | None, most: int) -> list[Change] | None:
    """What a reader who came back has missed: the calls of ``shown`` (by version) that look different now, and
    those that wait since ``newest``. None when there are more than ``most``: the reader must load anew."""
    changed = [
        _shown(call) for call in rows().filter(uuid__in=shown) if call.version != shown[call.uuid] or not call.waiting
    ]
    last = ToolCall.objects.filter(uuid=newest).values_list("pk", flat=True).first() if newest else None
    arrived = rows().filter(WAITS, pk__gt=last or 0).exclude(uuid__in=shown).order_by("pk")
    found = [*changed, *(change_of(call, None) for call in arrived[: most + 1])]
    return found if len(found) <= most else None


def _shown(call: ToolCall) -> Change:
    return change_of(call, (call.pk, 0, call.held_by_id, call.held_until, call.overdue, call.expires_at))


def change_of(call: ToolCall, before: tuple[Any, ...] | None) -> Change:
    """One change as sockets tell it: what happened, and the call as it is now, without its arguments."""
    return {"type": _what(call, before), "call": _brief(call)}


def _what(call: ToolCall, before: tuple[Any, ...] | None) -> str:
    if not call.waiting:
        endings = {Outcome.EXPIRED: "expired", Outcome.CANCELLED: "cancelled"}
        return endings.get(Outcome(call.outcome), "decided")
    if before is None:
        return "arrived"
    if before[2:4] != (call.held_by_id, call.held_until):
        return "held" if call.held_by_id else "released"
    return "overdue" if call.overdue and not before[4] else "changed"


def _brief(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.wire_id,
        "version": call.version,
        "state": call.state,
        "outcome": call.outcome or None,
        "agent_id": call.agent.wire_id,
        "agent": call.agent.name,
        "tool": call.name,
        "title": title(call),
        "sentence": sentence(call),
        "risk": call.risk,
        "expires_at": call.expires_at.isoformat() if call.expires_at else None,
        "overdue": call.overdue,
        "held_by": str(call.held_by) if call.held_by else None,
        "held_until": call.held_until.isoformat() if call.held_until else None,
        "by": str(call.decided_by) if call.decided_by else None,
        "at": call.decided_at.isoformat() if call.decided_at else None,
    }


queue = QueueWatch()
