"""Readers that cost or stall: ``python -m tests.bench.readers``, or ``measure()`` for a table.

A thousand idle websockets; and readers that open a stream and never read.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from contextlib import ExitStack

from tests.bench.place import Place, place, settle

TARGETS = {"kb_per_idle_socket": "<= 60", "mb_per_stalled_reader": "<= 2", "cut_after_seconds": "<= 45"}
SOCKETS, STALLED = 1000, 3
BULK = 60_000  # deltas of an answer that nobody reads


def measure() -> dict[str, float]:
    """Kilobytes for an idle websocket, megabytes for a reader that stalls, seconds until it is cut."""
    with place() as here:
        here.send(here.agent(), "warm up")
        return {"kb_per_idle_socket": _idle_sockets(here), **_stalled(here)}


def _idle_sockets(here: Place) -> float:
    agent = here.agent()
    token = here.server.manage("create_token", "admin", "--name", "bench") if _has_account(here) else ""
    with ExitStack() as stack:
        stack.callback(settle, 0.5)
        _open(here, agent, token, stack, 50)  # what the first ones bring along is not theirs
        settle(2)
        before = here.memory()
        _open(here, agent, token, stack, SOCKETS)
        settle(3)
        return (here.memory() - before) * 1024 / SOCKETS


def _has_account(here: Place) -> bool:
    here.server.manage("shell", "-v", "0", "-c", "from lettaweb.server.account import ensure_first; ensure_first()")
    return True


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


def _stalled(here: Place) -> dict[str, float]:
    """Readers that never read: what they make the server hold, and when it has had enough."""
    said = {"type": "text", "text": "word " * BULK, "pieces": ["word "] * BULK}
    here.script({"blocks": [said], "times": 0}, marker="stall")
    readers = [_stalled_reader(here, here.agent()) for _ in range(STALLED)]
    before, most, begun, cut = here.memory(), 0.0, time.monotonic(), 0.0
    while time.monotonic() - begun < 60:
        most = max(most, here.memory())
        if "reader_cut" in here.server.tail(200_000):
            cut = time.monotonic() - begun
            break
        time.sleep(0.2)
    for reader in readers:
        reader.close()
    # The run's own events are kept whole in memory until the answer is stored; they are not the readers'.
    return {"mb_per_stalled_reader": (most - before) / STALLED, "cut_after_seconds": cut or float("inf")}


def _stalled_reader(here: Place, agent: str) -> socket.socket:
    body = json.dumps({"messages": [{"role": "user", "content": "stall"}], "stream_tokens": True, "background": True})
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", here.server.port))
    head = f"POST /v1/agents/{agent}/messages/stream HTTP/1.1\r\nHost: 127.0.0.1:{here.server.port}\r\n"
    made.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return made


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<24} {value:8.2f}   target {TARGETS[name]}")


if __name__ == "__main__":
    main()
