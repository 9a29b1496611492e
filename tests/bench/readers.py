"""Readers that cost or stall: ``python -m tests.bench.readers``, or ``measure()`` for a table.

A thousand idle websockets; and readers that open a stream and never read: of one run that is over (also over
websockets), and of runs that speak. A run keeps its open answer whole in memory, whoever reads it: what runs take
that nobody reads, and what a reader leaves behind that does read, is not counted.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from tests.bench.place import Place, place, settle

TARGETS = {
    "kb_per_idle_socket": "<= 60",
    "mb_per_stalled_reader": "<= 2",
    "mb_per_stalled_replay": "<= 2",
    "mb_per_stalled_socket": "<= 2",
    "cut_after_seconds": "<= 45",
}
SOCKETS, STALLED = 1000, 8
PATIENCE = {"LETTAWEB_READER_SECONDS": "30"}  # the server's own; tests are in a hurry
MESSAGE = {"messages": [{"role": "user", "content": "stall"}], "stream_tokens": True, "background": True}
BULK = 60_000  # deltas of an answer that nobody reads


def measure() -> dict[str, float]:
    """Kilobytes for an idle websocket, megabytes for a reader that stalls, seconds until it is cut."""
    with place(**PATIENCE) as here:
        here.send(here.agent(), "warm up")
        token = _token(here)
        return {"kb_per_idle_socket": _idle_sockets(here, token), **_stalled(here, token)}


def _idle_sockets(here: Place, token: str) -> float:
    agent = here.agent()
    with ExitStack() as stack:
        stack.callback(settle, 0.5)
        _open(here, agent, token, stack, 50)  # what the first ones bring along is not theirs
        settle(2)
        before = here.memory()
        _open(here, agent, token, stack, SOCKETS)
        settle(3)
        return (here.memory() - before) * 1024 / SOCKETS


def _token(here: Place) -> str:
    here.server.manage("shell", "-v", "0", "-c", "from lettaweb.server.account import ensure_first; ensure_first()")
    return here.server.manage("create_token", "admin", "--name", "bench")


def _open(here: Place, agent: str, token: str, stack: ExitStack, count: int) -> None:
    for _ in range(count):
        stack.enter_context(websocket(here, f"/ws/agents/{agent}/", token))


def websocket(here: Place, path: str, token: str) -> socket.socket:
    """A websocket after its handshake; AssertionError when the server does not want it."""
    made = socket.create_connection(("127.0.0.1", here.server.port), timeout=30)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{here.server.port}", "Upgrade: websocket", "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", f"Authorization: Bearer {token}", "", "",
    ]  # fmt: skip
    made.sendall("\r\n".join(lines).encode())
    answered = made.recv(4096)
    assert answered.startswith(b"HTTP/1.1 101"), answered[:200]
    return made


def _stalled(here: Place, token: str) -> dict[str, float]:
    """Readers that never read: what they make the server hold, and when it has had enough."""
    _say(here, BULK)
    agents = [here.agent() for _ in range(STALLED)]
    (run,), _ = _alone(here, agents[:1])
    _read(here, run)
    before = here.memory()
    with ExitStack() as stack:
        for _ in agents:
            _stalled_reader(here, f"/v1/runs/{run}/stream", {}, stack)
        replay, cut = _most_until_cut(here)
    with ExitStack() as stack:
        for _ in agents:
            stack.enter_context(websocket(here, f"/ws/runs/{run}/", token))
        sockets, _ = _most_until_cut(here)
    _say(here, BULK // 2)
    alone = max(_alone(here, agents)[1] for _ in range(2))
    with ExitStack() as stack:
        for agent in agents:
            _stalled_reader(here, f"/v1/agents/{agent}/messages/stream", MESSAGE, stack)
        live, _ = _most_until_cut(here)
    return {
        "mb_per_stalled_reader": max(0.0, live - alone) / STALLED,
        "mb_per_stalled_replay": max(0.0, replay - before) / STALLED,
        "mb_per_stalled_socket": max(0.0, sockets - before) / STALLED,
        "cut_after_seconds": cut,
    }


def _say(here: Place, words: int) -> None:
    said = {"type": "text", "text": "word " * words, "pieces": ["word "] * words}
    here.reset()
    here.script({"blocks": [said], "times": 0}, marker="stall")


def _alone(here: Place, agents: Sequence[str]) -> tuple[list[str], float]:
    """The runs that ``agents`` have when nobody reads them, and the most memory meanwhile."""
    runs = [str(here.api.post(f"/v1/agents/{agent}/messages/async", json=MESSAGE).json()["id"]) for agent in agents]
    most = 0.0
    while any(here.api.get(f"/v1/runs/{run}").json()["status"] in ("created", "running") for run in runs):
        most = max(most, here.memory())
        time.sleep(0.1)
    return runs, most


def _read(here: Place, run: str) -> None:
    with here.api.stream("POST", f"/v1/runs/{run}/stream", json={}) as answered:
        assert sum(line.startswith("data: ") for line in answered.iter_lines()) > BULK


def _most_until_cut(here: Place) -> tuple[float, float]:
    """The most memory until the server cuts its readers, and when it begins to."""
    most, begun, before = 0.0, time.monotonic(), _cuts(here)
    while time.monotonic() - begun < 60:
        most = max(most, here.memory())
        if _cuts(here) > before:
            return most, time.monotonic() - begun
        time.sleep(0.2)
    return most, float("inf")


def _cuts(here: Place) -> int:
    said = here.server.tail(200_000)
    return said.count("reader_cut") + said.count("reader_too_slow")


def _stalled_reader(here: Place, path: str, given: Mapping[str, object], stack: ExitStack) -> None:
    made = stack.enter_context(socket.socket())
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", here.server.port))
    body = json.dumps(given)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{here.server.port}\r\n"
    made.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<24} {value:8.2f}   target {TARGETS[name]}")


if __name__ == "__main__":
    main()
