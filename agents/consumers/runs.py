"""``/ws/runs/<id>/?after=N&tokens=1``: the events of one run beyond number N; the socket closes after the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.consumers.reading import reading_of, tell_run
from agents.consumers.socket import BAD_ADDRESS, BadFrame, Receive, Send, cursor_of, opened, refuse
from lettaweb.lib.db import in_db_read
from lettaweb.lib.problems import Problem


async def run_socket(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    socket = await opened(scope, receive, send)
    if socket is None:
        return
    try:
        after = cursor_of(socket.query.get("after", ["0"])[-1])
        reading = await in_db_read(reading_of, socket.named["run_id"])
    except BadFrame:
        await send({"type": "websocket.close", "code": BAD_ADDRESS})
        return
    except Problem as problem:
        await refuse(send, problem)
        return
    tokens = socket.query.get("tokens", ["1"])[-1] != "0"
    await socket.serve(tell_run(socket, reading, after=after, tokens=tokens), _answer)


async def _answer(frame: Mapping[str, Any]) -> None:
    raise BadFrame("unknown_type", f"'{frame['type'][:40]}' is not understood here")
