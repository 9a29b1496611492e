"""The writer of deltas: a database that is away, a commit of which nobody knows, one stream's mistake."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest
from django.db import DataError, OperationalError

from agents.events import Batch, Fence, StepHead, whole
from agents.events.log import insert_deltas
from agents.events.writer import TICK, DeltaWriter, Stream
from agents.models import Run, RunStatus
from lettaweb.lib.db import in_db
from tests.agents.factories import default_of, make_agent, make_run

module = import_module("agents.events.writer")  # the package has an object of that name
pytestmark = pytest.mark.django_db(transaction=True)
Write = Callable[[list[tuple[Fence, Batch]]], list[bool]]


def a_run() -> Run:
    return make_run(default_of(make_agent(uuid.uuid4().hex)), RunStatus.RUNNING, epoch=1)


def a_stream(run: Run) -> Stream:
    return Stream(Fence(run.pk, 1), StepHead(str(uuid.uuid4()), "step-1", "now"), 0)


async def said(run: Run) -> list[tuple[int, str]]:
    batches = await in_db(whole, run.pk)
    return [(n, event[2]) for batch in batches for n, event in enumerate(batch.events, start=batch.first)]


class Flaky:
    """Stands before the real writing: what it raises comes instead of, or after, a call."""

    def __init__(self, real: Write, before: Sequence[Exception | None] = (), after: Sequence[Exception | None] = ()):
        self.real, self.before, self.after, self.calls = real, list(before), list(after), 0

    def __call__(self, batches: list[tuple[Fence, Batch]]) -> list[bool]:
        self.calls += 1
        if self.before and (error := self.before.pop(0)):
            raise error
        written = self.real(batches)
        if self.after and (error := self.after.pop(0)):
            raise error
        return written


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Flaky]:
    def make(**errors: Sequence[Exception | None]) -> Flaky:
        made = Flaky(module._write, **errors)
        monkeypatch.setattr(module, "_write", made)
        return made

    return make


async def settled(writer: DeltaWriter, stream: Stream) -> None:
    while stream.queued or stream.flying is not None:
        await asyncio.sleep(0.01)


async def test_it_waits_for_a_database_that_is_away(flaky: Any) -> None:
    broken = flaky(before=[OperationalError("database is locked")] * 4)
    run = await in_db(a_run)
    writer, stream = DeltaWriter(), a_stream(run)
    begun = asyncio.get_running_loop().time()
    for word in ("a", "b", "c"):
        writer.add(stream, [["a", 0, word]])
    await settled(writer, stream)
    assert await said(run) == [(1, "a"), (2, "b"), (3, "c")]
    assert broken.calls == 5
    assert asyncio.get_running_loop().time() - begun > TICK * (2 + 4 + 8 + 16) * 0.9, "it spins"


async def test_it_knows_its_own_commit_again(flaky: Any) -> None:
    flaky(after=[OperationalError("server closed the connection unexpectedly")])
    run = await in_db(a_run)
    writer, stream = DeltaWriter(), a_stream(run)
    writer.add(stream, [["a", 0, "a"]])
    await asyncio.sleep(0.01)
    writer.add(stream, [["a", 0, "b"]])
    await settled(writer, stream)
    assert not stream.lost.is_set()
    assert await said(run) == [(1, "a"), (2, "b")]
    assert stream.written is not None
    assert [event[2] for event in stream.written.events] == ["a", "b"]


async def test_it_says_that_a_run_is_not_ours_any_more() -> None:
    run = await in_db(a_run)
    writer, stream = DeltaWriter(), a_stream(run)
    await in_db(Run.objects.filter(pk=run.pk).update, epoch=2)
    writer.add(stream, [["a", 0, "a"]])
    await asyncio.wait_for(stream.lost.wait(), 5)
    assert await said(run) == []
    assert await writer.take(stream) == []


async def test_it_keeps_a_mistake_to_its_own_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = await in_db(a_run), await in_db(a_run)

    def picky(batches: list[tuple[Fence, Batch]]) -> list[bool]:
        if any(fence.run_id == bad.pk for fence, _ in batches):
            raise DataError("a character that no text may hold")
        return insert_deltas(batches)

    monkeypatch.setattr(module, "insert_deltas", picky)
    writer, streams = DeltaWriter(), [a_stream(bad), a_stream(good)]
    for stream in streams:
        writer.add(stream, [["a", 0, "x"]])
    await asyncio.wait_for(streams[0].lost.wait(), 5)
    await settled(writer, streams[1])
    assert isinstance(streams[0].error, DataError)
    assert await said(good) == [(1, "x")]


async def test_a_speaker_says_more_only_after_what_it_said_has_committed(flaky: Any) -> None:
    broken = flaky(before=[OperationalError("disk is full")] * 3)
    run = await in_db(a_run)
    writer, stream = DeltaWriter(), a_stream(run)
    writer.add(stream, [["a", 0, "a"], ["a", 0, "b"]])
    await asyncio.wait_for(writer.written(stream), 5)
    assert broken.calls == 4
    assert await said(run) == [(1, "a"), (2, "b")]
    assert await writer.take(stream) == []


async def test_a_speaker_does_not_wait_for_a_run_that_was_lost() -> None:
    run = await in_db(a_run)
    writer, stream = DeltaWriter(), a_stream(run)
    await in_db(Run.objects.filter(pk=run.pk).update, epoch=2)
    writer.add(stream, [["a", 0, "a"]])
    await asyncio.wait_for(writer.written(stream), 5)
    assert stream.lost.is_set()


async def test_runs_that_were_lost_leave_the_others_their_place() -> None:
    runs = [await in_db(a_run) for _ in range(3)]
    await in_db(Run.objects.filter(pk=runs[1].pk).update, status=RunStatus.CANCELLED)
    writer, streams = DeltaWriter(), [a_stream(run) for run in runs]
    for word, stream in zip("abc", streams, strict=True):
        writer.add(stream, [["a", 0, word]])
    for stream in streams:
        await asyncio.wait_for(writer.written(stream), 5)
    assert [stream.lost.is_set() for stream in streams] == [False, True, False]
    assert [await said(run) for run in runs] == [[(1, "a")], [], [(1, "c")]]
