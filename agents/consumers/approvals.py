"""``/ws/approvals/``: what changes among the calls that wait for people. Arguments are never in full here.

From us: ``hello`` {waiting, last}; ``changes`` {last, waiting, changes: [{n, type, call}]} with types
arrived, decided, expired, cancelled, held, released, overdue, changed; ``reset`` when too much was missed:
load the queue anew. From a client that comes back: ``sync`` {calls: {id: version}, newest: id}, answered by
``changes`` (with ``sync`` true) about those calls and the ones that arrived after ``newest``. A change may
be told by both: it is the same when id, version and type are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from agents.consumers.socket import BadFrame, Receive, Send, Socket, opened
from agents.consumers.watch import changes_for, queue
from agents.models import ToolCall
from lettaweb.lib import ids
from lettaweb.lib.db import in_db_read

MOST_SHOWN = 500  # calls that a client may ask about
MOST_MISSED = 200
AT_ONCE = 100  # changes of one frame


async def approvals_socket(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    socket = await opened(scope, receive, send)
    if socket is not None:
        await socket.serve(_tell(socket), lambda frame: _answer(socket, frame))


async def _tell(socket: Socket) -> None:
    with queue.watching() as changed:
        await queue.ready.wait()
        last = queue.last
        await socket.tell("hello", waiting=queue.waiting, last=last)
        while True:
            await changed.wait()
            changed.clear()
            changes = queue.since(last)
            if changes is None:
                last = queue.last
                await socket.tell("reset", waiting=queue.waiting, last=last)
                continue
            for start in range(0, len(changes), AT_ONCE):
                some = changes[start : start + AT_ONCE]
                last = some[-1]["n"]
                await socket.tell("changes", last=last, waiting=queue.waiting, changes=some)


async def _answer(socket: Socket, frame: Mapping[str, Any]) -> None:
    if frame["type"] != "sync":
        raise BadFrame("unknown_type", f"'{frame['type'][:40]}' is not understood here")
    shown, newest = _shown(frame.get("calls", {})), _newest(frame.get("newest"))
    changes = await in_db_read(changes_for, shown, newest, MOST_MISSED)
    if changes is None:
        await socket.tell("reset", waiting=queue.waiting, last=queue.last)
    else:
        await socket.tell("changes", last=queue.last, waiting=queue.waiting, changes=changes, sync=True)


def _shown(given: Any) -> dict[UUID, int]:
    if not isinstance(given, Mapping) or len(given) > MOST_SHOWN:
        raise BadFrame("bad_field", f"calls: at most {MOST_SHOWN} versions by id are expected")
    found = {ids.find(ToolCall.PREFIX, wire): version for wire, version in given.items()}
    versions = {uuid: version for uuid, version in found.items() if uuid and isinstance(version, int)}
    if len(versions) != len(given):
        raise BadFrame("bad_field", "calls: versions by id are expected")
    return versions


def _newest(given: Any) -> UUID | None:
    uuid = ids.find(ToolCall.PREFIX, given)
    if given is not None and uuid is None:
        raise BadFrame("bad_field", "newest: the id of a call is expected")
    return uuid
