"""Readers that stop reading: they cost little memory, are cut, and find everything when they come back."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.scripted.answers import answer, tokens
from tests.servers import ServerProcess
from tests.stories.client import Client, Json
from tests.stories.test_desk import listening, read
from tests.survival.kit import replayed, wait_until

pytestmark = pytest.mark.server

WORD = "word " * 400
WORDS = 3000  # six megabytes: more than the kernel holds for a reader
MANY = 40_000  # pieces of an answer: a few megabytes in memory for everybody who holds it whole
READERS = 8
MOST_MEGABYTES = 2  # for each reader; all that it does not read would be twelve


@dataclass
class Flood:
    """A run that has said much and is not over. ``end`` lets it end."""

    api: Client
    run: str

    def end(self) -> list[dict[str, Json]]:
        """Everything that the run said."""
        self.api.provider.release("flood")
        return [chunk for chunk in replayed(self.api, self.run) if chunk["message_type"] == "assistant_message"]


@pytest.fixture
def flood(api: Client) -> Iterator[Flood]:
    agent = api.agent()
    api.provider.script("", answer(tokens(WORDS, WORD), hold="flood", hold_at=WORDS))
    body = {"messages": [{"role": "user", "content": "go"}], "stream_tokens": True, "background": True}
    with api.open_stream(f"/v1/agents/{agent}/messages/stream", body) as frames:
        seen = 0
        for chunk in frames:
            seen += chunk["message_type"] == "assistant_message"
            if seen == WORDS - 10:
                break
    yield Flood(api, api.runs(agent)[0]["id"])
    api.provider.release("flood")


def narrow(server: ServerProcess) -> socket.socket:
    """A connection that takes little in advance."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", server.port))
    return made


def is_cut(connection: socket.socket) -> bool:
    """Whether the server has ended the connection, though nothing of it was read."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1


def stalled(server: ServerProcess, run: str) -> socket.socket:
    """A reader of a stream that reads nothing; HTTP/1.0, so that what it got is plain text."""
    body = b"{}"
    head = f"POST /v1/runs/{run}/stream HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    made = narrow(server)
    made.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return made


def chunks_of(connection: socket.socket) -> list[dict[str, Json]]:
    """The whole chunks that had come before the connection was cut."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    frames = got.partition(b"\r\n\r\n")[2].split(b"\n\n")[:-1]
    assert b"data: [DONE]" not in frames
    return [json.loads(frame.removeprefix(b"data: ")) for frame in frames if frame.startswith(b"data: {")]


def web_memory(server: ServerProcess) -> float:
    """Megabytes of the process that answers."""
    web = next(one for one in server.everybody() if one.cmdline()[-1:] == ["web"])
    return float(web.memory_info().rss) / 2**20


def cheaply(server: ServerProcess) -> Callable[[Callable[[], bool]], None]:
    """To be called with a condition once the readers are there: they must cost little until it is true."""
    before = web_memory(server)

    def until(all_cut: Callable[[], bool]) -> None:
        most = before

        def look() -> bool:
            nonlocal most
            most = max(most, web_memory(server))
            return all_cut()

        wait_until(look, "the end of every reader")
        assert most - before < MOST_MEGABYTES * READERS

    return until


def until_cut(server: ServerProcess, run: str) -> list[socket.socket]:
    """Readers of ``run`` that read nothing, once the server has cut them all."""
    until = cheaply(server)
    readers = [stalled(server, run) for _ in range(READERS)]
    until(lambda: all(is_cut(reader) for reader in readers))
    return readers


def said(chunks: list[dict[str, Json]]) -> dict[int, str]:
    return {chunk["seq_id"]: chunk["content"] for chunk in chunks if chunk["message_type"] == "assistant_message"}


def test_it_cuts_streams_that_nobody_reads(server: ServerProcess, flood: Flood) -> None:
    readers = until_cut(server, flood.run)
    got = [chunks_of(reader) for reader in readers]
    whole = said(flood.end())
    assert len(whole) == WORDS
    for chunks in got:
        last = chunks[-1]["seq_id"] if chunks else 0
        assert last < WORDS // 2, "it was not behind"
        rest = said(replayed(flood.api, flood.run, last))
        assert {**said(chunks), **rest} == whole
        assert said(chunks).keys().isdisjoint(rest)
    for reader in readers:
        reader.close()


@pytest.fixture
def talkative(api: Client) -> str:
    """A run that is over, with an answer in so many pieces that it takes ten times its text when it is read."""
    agent = api.agent()
    api.provider.script("", answer(tokens(MANY)))
    assert api.stream(agent, "go")[-1]["done"]
    return str(api.runs(agent)[0]["id"])


def test_it_does_not_hold_a_long_answer_for_each_stream(server: ServerProcess, api: Client, talkative: str) -> None:
    whole = said(replayed(api, talkative))  # what one reader leaves behind is not the others'
    assert len(whole) == MANY
    for reader in until_cut(server, talkative):
        seen = said(chunks_of(reader))
        assert seen == {number: whole[number] for number in seen}
        reader.close()


@contextmanager
def frozen(server: ServerProcess, path: str, token: str) -> Iterator[ClientConnection]:
    """A websocket whose program reads a frame now and then at most."""
    headers: Mapping[str, str] = {"Authorization": f"Bearer {token}"}
    with closing(narrow(server)) as connection, connect(
        f"ws://127.0.0.1:{server.port}{path}", sock=connection, additional_headers=headers,
        max_size=None, max_queue=1, proxy=None, ping_interval=None, close_timeout=0.1,
    ) as made:  # fmt: skip
        yield made


def cuts(server: ServerProcess) -> int:
    return server.tail(10_000_000).count("reader_too_slow")


def to_the_close(reader: ClientConnection) -> tuple[list[Json], int]:
    """The frames that still come, and the code that the socket closes with."""
    frames: list[Json] = []
    try:
        while True:
            frames.append(read(reader))
    except ConnectionClosed as closed:
        return frames, closed.rcvd.code if closed.rcvd else 0


def chunks_in(frames: list[Json]) -> list[dict[str, Json]]:
    return [chunk for frame in frames for chunk in frame.get("chunks", ())]


def test_it_tells_a_socket_that_was_too_slow_to_come_back(server: ServerProcess, token: str, flood: Flood) -> None:
    path, before = f"/ws/runs/{flood.run}/", cuts(server)
    with frozen(server, path, token) as slow, frozen(server, path, token) as deaf:
        wait_until(lambda: cuts(server) >= before + 2, "the end of the server's patience")
        frames, code = to_the_close(slow)
        assert code == 4408
        wait_until(lambda: is_cut(deaf.socket), "the end of a connection that stays frozen")
    last, chunks = frames[-1]["last"], chunks_in(frames)
    assert 0 < last < WORDS // 2
    whole = said(flood.end())
    with listening(server, f"{path}?after={last}", token) as again:
        rest, code = to_the_close(again)
    assert code == 1000
    assert said([*chunks, *chunks_in(rest)]) == whole
    assert said(chunks).keys().isdisjoint(said(chunks_in(rest)))


def test_it_does_not_hold_a_long_answer_for_each_socket(server: ServerProcess, token: str, talkative: str) -> None:
    path, before = f"/ws/runs/{talkative}/", cuts(server)
    with listening(server, path, token) as reader:
        assert len(said(chunks_in(to_the_close(reader)[0]))) == MANY
    until = cheaply(server)
    with ExitStack() as readers:
        for _ in range(READERS):
            readers.enter_context(frozen(server, path, token))
        until(lambda: cuts(server) >= before + READERS)
