"""The desk in a running server: what is decided there goes on, and sockets tell of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.scripted.answers import answer, tool_use
from tests.servers import ServerProcess
from tests.stories.client import Client
from tests.stories.sources import ECHO

Json = Any


def asked(api: Client, count: int = 1, **options: Any) -> tuple[str, list[Json]]:
    """An agent whose calls wait, and those calls as the desk lists them."""
    tool = api.gated(ECHO)
    agent = api.agent(tool, parallel=True)
    uses = [tool_use(tool["name"], {"text": f"hello {number}"}) for number in range(count)]
    api.provider.script("", answer(*uses))
    assert api.send(agent, "go", **options).stop == "requires_approval"
    found = api.get("/api/approvals/", agent_id=agent)["items"]
    assert len(found) == count
    return agent, found


def decide(api: Client, call: Json, decision: str, **fields: Any) -> Json:
    body = {"version": call["version"], "digest": call["digest"], "decision": decision, **fields}
    done = api.call("POST", f"/api/approvals/{call['id']}/decide", body)
    assert done.status == 200, done
    return done.body


def results(api: Client, agent: str) -> list[Json]:
    found = [message for message in api.history(agent) if message["message_type"] == "tool_return_message"]
    return [one for message in found for one in message["tool_returns"]]


@contextmanager
def listening(server: ServerProcess, path: str, token: str) -> Iterator[ClientConnection]:
    where = server.url.replace("http://", "ws://") + path
    with connect(where, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None, max_size=None) as socket:
        yield socket


def read(socket: ClientConnection) -> Json:
    return json.loads(socket.recv(timeout=20))


def until(socket: ClientConnection, kind: str) -> Json:
    while (frame := read(socket))["type"] != kind:
        continue
    return frame


def say_and_read(socket: ClientConnection, text: str) -> None:
    """Send a frame, and read until the socket closes or an error answers it."""
    socket.send(text)
    until(socket, "error")


def test_it_runs_what_a_person_approved_with_changes_and_says_so(api: Client) -> None:
    agent, (call,) = asked(api)
    run = decide(api, call, "approve", arguments={"text": "changed"})["continues_in"]
    assert api.wait_ended(run)["stop_reason"] == "end_turn"
    (result,) = results(api, agent)
    assert result["tool_return"] == (
        'A person changed the arguments before this call ran: {"text": "changed"}\necho changed'
    )
    assert api.provider.refused == []


LOGIN = '''
def NAME(user: str, password: str) -> str:
    """
    Log in.

    Args:
        user (str): Who.
        password (str): Their password.
    """
    print("trying", password)
    return f"{user} is in with {password}"
'''


def test_it_blacks_out_secret_arguments_that_a_tool_repeats(api: Client) -> None:
    tool = api.gated(LOGIN)
    schema = tool["json_schema"]
    schema["parameters"]["properties"]["password"]["format"] = "password"
    assert api.call("PATCH", f"/v1/tools/{tool['id']}", {"json_schema": schema}).status == 200
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"user": "ann", "password": "hunter2"})))
    assert api.send(agent, "go").stop == "requires_approval"
    (call,) = api.get("/api/approvals/", agent_id=agent)["items"]
    api.wait_ended(decide(api, call, "approve", arguments={"user": "ann", "password": "s3cret-new"})["continues_in"])
    (result,) = results(api, agent)
    assert result["tool_return"].endswith("ann is in with [redacted]")
    assert result["stdout"] == ["trying [redacted]\n"]
    assert "s3cret-new" not in str(api.history(agent))


def test_it_goes_on_once_when_all_of_a_set_is_decided(api: Client) -> None:
    agent, calls = asked(api, 3)
    assert decide(api, calls[2], "deny", reason="not this one")["continues_in"] is None
    assert decide(api, calls[0], "answer", result="by hand")["continues_in"] is None
    assert results(api, agent) == []
    run = decide(api, calls[1], "approve")["continues_in"]
    api.wait_ended(run)
    texts = [result["tool_return"] for result in results(api, agent)]
    assert [texts[0], texts[1]] == ["by hand", "echo hello 1"]
    assert texts[2].startswith("Error: request to call tool denied. User reason: not this one")
    assert len(api.runs(agent)) == 2
    assert api.provider.refused == []


def test_it_frees_an_agent_that_waits(api: Client) -> None:
    agent, calls = asked(api, 2)
    assert api.send(agent, "hello?").status == 409
    closed = api.call("POST", "/api/approvals/unstick", {"agent_id": agent}).body["closed"]
    assert {one["id"] for one in closed} == {call["id"] for call in calls}
    assert api.send(agent, "hello?").stop == "end_turn"
    assert api.provider.refused == []


def test_it_tells_the_queue_and_the_run_over_sockets(api: Client, server: ServerProcess, token: str) -> None:
    with listening(server, "/ws/approvals/", token) as queue:
        until(queue, "hello")
        _agent, (call,) = asked(api)
        arrived = until(queue, "changes")["changes"][0]
        assert (arrived["type"], arrived["call"]["id"]) == ("arrived", call["id"])
        run = decide(api, call, "approve")["continues_in"]
        assert until(queue, "changes")["changes"][0]["type"] == "decided"
    api.wait_ended(run)
    with listening(server, f"/ws/runs/{run}/?after=0", token) as reader:
        chunks = until(reader, "events")["chunks"]
        assert until(reader, "end")["status"] == "completed"
        with pytest.raises(ConnectionClosed) as closed:
            reader.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000
    with api.open_stream(f"/v1/runs/{run}/stream", {"starting_after": 0}) as frames:
        streamed = [frame for frame in frames if frame["message_type"] != "done"]
    assert [(one["seq_id"], one["message_type"]) for one in chunks] == [
        (one["seq_id"], one["message_type"]) for one in streamed
    ]


def test_it_follows_an_agent_live_and_after_a_break(api: Client, server: ServerProcess, token: str) -> None:
    agent = api.agent()
    with listening(server, f"/ws/agents/{agent}/?follow=1", token) as feed:
        until(feed, "hello")
        assert api.send(agent, "go").stop == "end_turn"
        begun = until(feed, "run")["run"]
        chunks: list[Json] = []
        while (frame := read(feed))["type"] != "end":
            chunks += frame.get("chunks", [])
    numbers = [chunk["seq_id"] for chunk in chunks]
    assert numbers == sorted(numbers)
    with listening(server, f"/ws/runs/{begun['id']}/?after={numbers[0]}", token) as again:
        rest = until(again, "events")["chunks"]
    assert [chunk["seq_id"] for chunk in rest] == [number for number in numbers if number > numbers[0]]


@pytest.mark.parametrize("sent", ["", "x", "Bearer x", "Bearer"])
def test_it_lets_nobody_listen_without_a_token(server: ServerProcess, sent: str) -> None:
    headers = {"Authorization": sent} if sent else {}
    where = server.url.replace("http://", "ws://") + "/ws/approvals/"
    with connect(where, additional_headers=headers, proxy=None) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=20)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


def test_it_survives_frames_that_make_no_sense(server: ServerProcess, token: str) -> None:
    with listening(server, "/ws/approvals/", token) as socket, listening(server, "/ws/approvals/", token) as other:
        for frame in ("hello", "", "[1]", "null", '{"type": "dance"}', '{"type": NaN}', "[" * 3000, b"\x00"):
            socket.send(frame)
            until(socket, "error")
        with pytest.raises(ConnectionClosed):
            say_and_read(socket, '{"type": "' + "x" * 5_000_000 + '"}')
        other.send('{"type": "ping"}')
        assert until(other, "pong")
    assert "Traceback" not in server.tail(20_000)
    assert token not in server.log.read_text(errors="replace")
