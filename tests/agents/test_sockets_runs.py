"""A run's events over a websocket: replay and live in one, nothing missing, nothing doubled, nothing left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from agents.consumers import socket as sockets
from agents.events import Batch, Event, Fence, StepHead, append_facts, hub
from agents.events.log import drop
from agents.events.wake import announce_here
from agents.models import Agent, MessageRole, Run, RunStatus
from lettaweb.lib.db import in_db
from tests.agents import factories as make
from tests.agents.desk import person, refund_tool
from tests.agents.factories import write_deltas
from tests.agents.sockets import Reader, connected, eventually

pytestmark = pytest.mark.django_db(transaction=True)
USAGE: Event = ["usage", {"message_type": "usage_statistics"}]
HEAD = StepHead("00000000-0000-4000-8000-000000000001", "step-1", "2026-03-01T12:00:00+00:00")


@pytest.fixture
def vera() -> User:
    return person("vera", "viewer")


@pytest.fixture
def run() -> Run:
    return make.make_run(make.default_of(make.make_agent()), RunStatus.RUNNING, epoch=1)


def write(run: Run, *texts: str) -> None:
    """Commit text deltas, and tell readers as the writer of this process does."""
    with transaction.atomic():
        last = hub_last(run)
        assert write_deltas(Fence(run.pk, 1), Batch(last + 1, [["a", 0, text] for text in texts], HEAD))
        announce_here("events", run.pk)


def hub_last(run: Run) -> int:
    from agents.events import last_seq

    return last_seq(run.pk)


def finish(run: Run) -> None:
    with transaction.atomic():
        append_facts(Fence(run.pk, 1), [["stop", "end_turn"], USAGE])
        Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED, stop_reason="end_turn")
        announce_here("events", run.pk)


def said(frame: dict[str, Any]) -> list[tuple[int, str]]:
    return [(chunk["seq_id"], chunk.get("content", chunk["message_type"])) for chunk in frame["chunks"]]


async def read_to_the_end(reader: Reader) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while (frame := await reader.frame())["type"] != "end":
        found += said(frame) if frame["type"] == "events" else []
    return found


async def test_it_replays_and_goes_on_live(vera: User, run: Run) -> None:
    await in_db(write, run, "a", "b")
    async with connected(f"/ws/runs/{run.wire_id}/?after=1", vera) as reader:
        first = await reader.frame()
        assert (first["type"], first["run_id"], first["last"], said(first)) == ("events", run.wire_id, 2, [(2, "b")])
        await in_db(write, run, "c")
        assert said(await reader.frame()) == [(3, "c")]
        await in_db(finish, run)
        last = await reader.frame()
        assert [number for number, _ in said(last)] == [4, 5]
        end = await reader.frame()
        assert (end["type"], end["status"], end["stop_reason"], end["last"]) == ("end", "completed", "end_turn", 5)
        assert await reader.code() == 1000
    assert not hub.tails


@pytest.mark.parametrize("cut", range(6))
async def test_it_misses_and_doubles_nothing_over_a_reconnect(vera: User, run: Run, cut: int) -> None:
    await in_db(write, run, *"abcd")
    seen: list[tuple[int, str]] = []
    async with connected(f"/ws/runs/{run.wire_id}/?after=0", vera) as reader:
        frame = await reader.frame()
        seen += said(frame)[:cut]
    await in_db(finish, run)
    after = seen[-1][0] if seen else 0
    async with connected(f"/ws/runs/{run.wire_id}/?after={after}", vera) as reader:
        seen += await read_to_the_end(reader)
    assert [number for number, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert [text for _, text in seen][:4] == list("abcd")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"text": "hello"}, "bad_json"),
        ({"text": ""}, "bad_json"),
        ({"text": "[1]"}, "bad_frame"),
        ({"text": "null"}, "bad_frame"),
        ({"text": "{}"}, "bad_frame"),
        ({"text": '{"type": 1}'}, "bad_frame"),
        ({"text": '{"type": "dance"}'}, "unknown_type"),
        ({"text": '{"type": "ping", "x": NaN}'}, "bad_json"),
        ({"text": "[" * 5000}, "bad_json"),
        ({"text": '{"type":"ping","x":' + "[" * 200 + "]" * 200 + "}"}, "bad_json"),
        ({"text": '{"type": "' + "x" * 5_000_000 + '"}'}, "too_large"),
        ({"bytes": b"\x00\xff"}, "binary"),
        ({"text": '{"type": "\\ud800"}'}, "unknown_type"),
    ],
)
async def test_it_answers_frames_that_make_no_sense_and_stays(vera: User, run: Run, message: Any, code: str) -> None:
    async with (
        connected(f"/ws/runs/{run.wire_id}/", vera) as reader,
        connected(f"/ws/runs/{run.wire_id}/", vera) as other,
    ):
        await reader.say_raw(message)
        error = await reader.until("error")
        assert error["code"] == code
        await reader.say({"type": "ping"})
        assert (await reader.until("pong"))["type"] == "pong"
        assert await other.silent(0.05)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("runs/run-00000000-0000-4000-8000-000000000000/", 4404),
        ("runs/nonsense/", 4404),
        ("agents/agent-00000000-0000-4000-8000-000000000000/", 4404),
        ("runs/REAL/?after=-1", 4400),
        ("runs/REAL/?after=x", 4400),
        ("runs/REAL/?after=99999999999999999999", 4400),
    ],
)
async def test_it_closes_with_a_code_that_says_why(vera: User, run: Run, path: str, code: int) -> None:
    async with connected("/ws/" + path.replace("REAL", run.wire_id), vera) as reader:
        assert await reader.code() == code


async def test_it_shows_what_is_left_when_the_log_is_gone(vera: User, run: Run) -> None:
    await in_db(write, run, "a")
    await in_db(finish, run)

    def forget() -> None:
        drop([run.pk])
        Run.objects.filter(pk=run.pk).update(events_dropped=True)
        make.make_message(run.conversation, "kept", role=MessageRole.USER, run=run)

    await in_db(forget)
    async with connected(f"/ws/runs/{run.wire_id}/?after=1", vera) as reader:
        reset = await reader.frame()
        assert (reset["type"], [message["content"] for message in reset["messages"]]) == ("reset", ["kept"])
        assert (await reader.frame())["type"] == "end"
        assert await reader.code() == 1000


async def test_it_masks_secrets_and_shows_such_calls_whole(vera: User, run: Run) -> None:
    def with_secret() -> None:
        agent = Agent.objects.get(pk=run.agent_id)
        agent.tools.add(refund_tool())
        call = {"name": "refund", "arguments": '{"order": 1, "password": "hunter2"}', "tool_call_id": "c1"}
        message = {"message_type": "tool_call_message", "tool_call": call, "tool_calls": [call]}
        with transaction.atomic():
            write_deltas(
                Fence(run.pk, 1),
                Batch(1, [["c", 0, "c1", "refund", '{"password": "hun'], ["c", 0, None, None, 'ter2"}']], HEAD),
            )
            append_facts(Fence(run.pk, 1), [["m", message, 1], ["m", message, 2]])

    await in_db(with_secret)
    await in_db(finish, run)
    async with connected(f"/ws/runs/{run.wire_id}/", vera) as reader:
        frame = await reader.frame()
        assert "hunter2" not in str(frame)
        assert [chunk["message_type"] for chunk in frame["chunks"]] == [
            "tool_call_message",
            "stop_reason",
            "usage_statistics",
        ]
        assert [chunk["seq_id"] for chunk in frame["chunks"]] == [3, 5, 6]


async def test_it_leaves_nothing_behind_when_clients_go_while_it_talks(vera: User, run: Run) -> None:
    await in_db(write, run, *["x" * 500] * 300)
    before = len(asyncio.all_tasks())
    for _ in range(20):
        async with connected(f"/ws/runs/{run.wire_id}/", vera):
            await asyncio.sleep(0)
    await eventually(lambda: not hub.tails and len(asyncio.all_tasks()) <= before + 1)
    await in_db(run.refresh_from_db)
    assert run.status == RunStatus.RUNNING


async def test_it_cuts_a_reader_that_does_not_read(vera: User, run: Run, settings: Any) -> None:
    settings.LETTAWEB_READER_SECONDS = 0.1
    await in_db(write, run, "a")
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "websocket.send":
            await asyncio.sleep(60)

    arriving: list[Any] = [{"type": "websocket.connect"}]

    async def receive() -> Any:
        if not arriving:
            await asyncio.sleep(60)
        return arriving.pop()

    scope = {"type": "websocket", "user": vera, "query_string": b"", "url_route": {"kwargs": {"run_id": run.wire_id}}}
    from agents.consumers.runs import run_socket

    await asyncio.wait_for(run_socket(scope, receive, send), 5)
    assert sent[-1] == {"type": "websocket.close", "code": 4408}
    assert not hub.tails


async def test_it_closes_when_the_right_to_read_is_gone(vera: User, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "RIGHTS_SECONDS", 0.05)
    async with connected(f"/ws/runs/{run.wire_id}/", vera) as reader:
        await in_db(lambda: User.objects.filter(pk=vera.pk).update(is_active=False))
        assert await reader.code() == 4403


async def test_it_breaks_the_silence(vera: User, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "HEARTBEAT", 0.05)
    async with connected(f"/ws/runs/{run.wire_id}/", vera) as reader:
        assert [(await reader.frame())["type"] for _ in range(3)] == ["ping", "ping", "ping"]
