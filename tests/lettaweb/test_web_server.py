"""The web server itself, with a small application in place of ours: back-pressure, caps, an orderly end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import websockets.exceptions
import websockets.sync.client

from tests.servers import ROOT, base, clean_environment, free_port

APPLICATION = """
import asyncio, os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "lettaweb.settings"
import django
django.setup()
from lettaweb import lifespan
from lettaweb.server import web

async def nothing(): pass
lifespan.start = nothing
async def stop():
    lifespan.drain.begin()
lifespan.stop = stop
sent = 0

talking = 0

async def talk(receive, send, message):
    # Until the other side is gone, however it went.
    global talking
    talking += 1
    telling = asyncio.ensure_future(repeat(send, message))
    while not (await receive())["type"].endswith("disconnect"):
        pass
    telling.cancel()
    talking -= 1

async def repeat(send, message):
    while True:
        await send(message)
        await asyncio.sleep(0.01)

async def application(scope, receive, send):
    global sent
    if scope["type"] == "websocket" and scope["path"] == "/talk":
        await receive()
        await send({"type": "websocket.accept"})
        await talk(receive, send, {"type": "websocket.send", "text": "event"})
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while scope["path"] == "/quiet":
            await receive()
        while True:
            await send({"type": "websocket.send", "text": "x" * 65536})
            sent += 65536
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    path = scope["path"]
    if path == "/flood":
        for _ in range(int(scope["query_string"] or 1000)):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            sent += 65536
        await send({"type": "http.response.body", "body": b""})
    elif path == "/slow":
        await send({"type": "http.response.body", "body": b": hello\\n", "more_body": True})
        await lifespan.drain.wait()
        await send({"type": "http.response.body", "body": b"come back", "more_body": False})
    elif path == "/talk":
        await talk(receive, send, {"type": "http.response.body", "body": b"event", "more_body": True})
    elif path == "/talking":
        await send({"type": "http.response.body", "body": str(talking).encode()})
    elif path == "/busy":
        await send({"type": "http.response.body", "body": b"now", "more_body": True})
        time.sleep(0.5)
        await send({"type": "http.response.body", "body": b""})
    elif path == "/broken":
        await send({"type": "http.response.body", "body": b"event", "more_body": True})
        raise RuntimeError("a bug")
    elif path == "/deaf":
        await send({"type": "http.response.body", "body": b": hello\\n", "more_body": True})
        await asyncio.Event().wait()
    else:
        await send({"type": "http.response.body", "body": str(sent).encode()})

server = web.WebServer(application, endpoints=["tcp:port=%s:interface=127.0.0.1" % sys.argv[1]], signal_handlers=False)
server.run()
sys.exit(server.exit_code)
"""


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    port: int

    def ask(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", trust_env=False, timeout=10)

    def sent(self) -> int:
        return int(self.ask("/sent").text)

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def connect(self, request: str) -> socket.socket:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(request.encode())
        return connection


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server for all tests that let it live."""
    with started(tmp_path_factory.mktemp("running")) as made:
        yield made


@pytest.fixture
def ending(tmp_path: Path) -> Iterator[Running]:
    """A server for one test that ends it."""
    with started(tmp_path) as made:
        yield made


@contextmanager
def started(directory: Path) -> Iterator[Running]:
    port = free_port()
    environment = {**clean_environment(), **base(directory), "LETTAWEB_MAX_BODY_MB": "1"}
    environment |= {"LETTAWEB_READER_SECONDS": "1", "LETTAWEB_PING_SECONDS": "1"}
    process = subprocess.Popen([sys.executable, "-c", APPLICATION, str(port)], env=environment, cwd=ROOT)
    made = Running(process, port)
    wait_until(lambda: answers(made), 30)
    yield made
    process.kill()
    process.wait()


def answers(running: Running) -> bool:
    try:
        return running.ask("/").status_code == 200
    except httpx.HTTPError:
        return False


def wait_until(condition: object, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.05)
    raise AssertionError("it did not come true in time")


def test_it_waits_for_a_slow_reader_and_cuts_one_that_takes_nothing(running: Running) -> None:
    before, sent = running.memory(), running.sent()
    readers = [running.connect("GET /flood?4000 HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
    time.sleep(0.5)
    assert running.memory() - before < 40 * 1024 * 1024
    assert running.sent() - sent < 3 * 8 * 1024 * 1024
    for reader in readers:
        wait_until(lambda reader=reader: is_cut(reader), 20)
    assert running.ask("/").status_code == 200


def is_cut(connection: socket.socket) -> bool:
    """Whether the server has reset the connection, though we never read what it sent."""
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0 or established(connection) is False


def established(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1


def test_it_sends_everything_to_a_reader_that_takes_its_time(running: Running) -> None:
    connection = running.connect("GET /flood?32 HTTP/1.0\r\nHost: x\r\n\r\n")
    received = 0
    while part := connection.recv(131072):
        received += len(part)
        time.sleep(0.002)
    assert received > 32 * 65536


def test_it_holds_back_on_a_websocket_that_is_not_read(running: Running) -> None:
    before, sent = running.memory(), running.sent()
    with websockets.sync.client.connect(
        f"ws://127.0.0.1:{running.port}/", max_size=None, max_queue=1, proxy=None, close_timeout=0.1
    ):
        time.sleep(0.7)
        assert running.sent() - sent < 32 * 1024 * 1024
        assert running.memory() - before < 40 * 1024 * 1024


UPGRADE = (
    "GET /quiet HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_it_lets_a_websocket_go_whose_client_sleeps(running: Running) -> None:
    with websockets.sync.client.connect(f"ws://127.0.0.1:{running.port}/quiet", proxy=None) as awake:
        asleep = running.connect(UPGRADE)
        asleep.settimeout(15)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while part := asleep.recv(4096):  # it reads, but answers no ping
                said += part
        assert b"101 Switching" in said
        assert b"\x89" in said  # the ping
        awake.ping().wait(10)


def test_it_answers_head_without_a_body_and_leaves_broken_forms_to_the_application(running: Running) -> None:
    form = "POST /sent HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data\r\nContent-Length: 1\r\n"
    connection = running.connect(f"HEAD /flood?3 HTTP/1.1\r\nHost: x\r\n\r\n{form}Connection: close\r\n\r\nx")
    answer = b""
    while part := connection.recv(65536):
        answer += part
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"xxxx" not in answer


def test_it_sends_all_and_closes_where_the_kernel_takes_little_at_once(running: Running) -> None:
    connection = running.connect("GET /flood?20 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    connection.settimeout(20)
    answer = b""
    while part := connection.recv(65536):
        answer += part
    assert answer.partition(b"\r\n\r\n")[2].count(b"x") == 20 * 65536
    assert answer.endswith(b"0\r\n\r\n")


TALKS = {
    "stream": ("GET /talk HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "websocket": (UPGRADE.replace("/quiet", "/talk"), b"\x81\x82\0\0\0\0hi"),
}


@pytest.mark.parametrize(("request_text", "last"), TALKS.values(), ids=TALKS)
def test_it_notices_a_reset_behind_a_last_word(running: Running, request_text: str, last: bytes) -> None:
    """Of a connection that says something and is gone in one turn of the loop."""
    connections = [running.connect(request_text) for _ in range(5)]
    for connection in connections:
        assert connection.recv(4096)
    assert running.ask("/talking").text == "5"
    busy = running.connect("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n")
    while b"now" not in busy.recv(4096):
        pass
    for connection in connections:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(last)
        connection.close()
    wait_until(lambda: running.ask("/talking").text == "0", 10)
    assert running.ask("/talking").text == "0"


def test_an_answer_that_fails_on_its_way_is_cut_and_every_later_one_too(running: Running) -> None:
    for _ in range(2):
        connection = running.connect("GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.settimeout(10)
        answer = rest(connection)
        assert b"event" in answer
        assert not answer.endswith(b"0\r\n\r\n")


BODIES = {
    "declared": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n",
    "chunked": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + ("10000\r\n" + "x" * 65536 + "\r\n") * 20,
}


@pytest.mark.parametrize("request_text", BODIES.values(), ids=BODIES)
def test_it_refuses_a_large_body_before_it_has_come(running: Running, request_text: str) -> None:
    connection = running.connect(request_text)
    answer = b""
    while part := connection.recv(4096):
        answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b'{"detail":"The body is larger than 1 MB."}')
    assert running.ask("/").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order_under_open_streams(ending: Running, number: signal.Signals) -> None:
    slow = [ending.connect("GET /slow HTTP/1.0\r\nHost: x\r\n\r\n") for _ in range(5)]
    deaf = [ending.connect("GET /deaf HTTP/1.0\r\nHost: x\r\n\r\n") for _ in range(5)]
    for connection in [*slow, *deaf]:
        assert connection.recv(4096)
    os.kill(ending.process.pid, number)
    assert ending.process.wait(timeout=20) == 0
    assert [b"come back" in rest(connection) for connection in slow] == [True] * 5
    assert not any(b"come back" in rest(connection) for connection in deaf)


def test_it_asks_websockets_to_come_back(ending: Running) -> None:
    with websockets.sync.client.connect(f"ws://127.0.0.1:{ending.port}/quiet", proxy=None) as client:
        os.kill(ending.process.pid, signal.SIGTERM)
        with pytest.raises(websockets.exceptions.ConnectionClosed) as caught:
            client.recv(timeout=10)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1012
    assert ending.process.wait(timeout=20) == 0


def rest(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(4096):
            found += part
    except ConnectionResetError:
        pass
    return found
