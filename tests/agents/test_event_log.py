"""The log of a run, read in parts that a reader can hold for long: nothing is missing, nothing comes twice."""

from __future__ import annotations

import asyncio
from importlib import import_module

import pytest

from agents.events import Batch, Event, Fence, StepHead, append_facts, hub, page, read_events, whole
from agents.events.kinds import BEARABLE, bearable, encode, weight
from agents.events.log import append_many, merged
from agents.loop.prepare import shown_of
from agents.models import EventSegment, Run, RunStatus, StepStatus
from lettaweb.lib.db import in_db
from tests.agents import factories as make
from tests.agents.factories import write_deltas

hub_module = import_module("agents.events.hub")  # the package has an object of that name
pytestmark = pytest.mark.django_db(transaction=True)
UUID = "00000000-0000-4000-8000-000000000001"
HEAD = StepHead(UUID, "step-1", "2026-03-01T12:00:00+00:00")
USAGE: Event = ["usage", {"message_type": "usage_statistics"}]
Numbered = list[tuple[int, Event]]


def a_run() -> Run:
    return make.make_run(make.default_of(make.make_agent()), RunStatus.RUNNING, epoch=1)


def words(count: int, text: str = "word ") -> list[Event]:
    return [["a", 0, f"{number} {text}"] for number in range(count)]


def numbered(batches: list[Batch]) -> Numbered:
    return [pair for batch in batches for pair in enumerate(batch.events, batch.first)]


def finish(run: Run) -> None:
    append_facts(Fence(run.pk, 1), [["stop", "end_turn"], USAGE])
    Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED, stop_reason="end_turn")


def in_pages(run: Run) -> list[list[Batch]]:
    pages: list[list[Batch]] = []
    while found := page(run.pk, pages[-1][-1].last if pages else 0):
        pages.append(found)
    return pages


@pytest.mark.parametrize(("count", "size", "parts"), [(3_000, 10, 3), (300, 2_000, 3), (20, 10, 1)])
def test_it_stores_a_long_answer_in_parts_and_gives_it_in_pages(count: int, size: int, parts: int) -> None:
    run, events = a_run(), words(count, "x" * size)
    rest: list[Event] = [["m", {"message_type": "assistant_message", "content": "all of it"}, 1]]
    written = Batch(1, events, HEAD)
    fence = Fence(run.pk, 1)
    write_deltas(fence, written)
    append_many([(fence, segment) for segment in merged(fence, written, Batch(written.last + 1, rest, HEAD))])
    assert EventSegment.objects.filter(run=run).count() == parts
    pages = in_pages(run)
    assert [pair for found in pages for pair in numbered(found)] == list(enumerate([*events, *rest], 1))
    assert all(sum(weight(event) for _, event in numbered(found)) <= BEARABLE for found in pages)
    assert {batch.head for found in pages for batch in found} == {HEAD}


@pytest.mark.parametrize("size", [10, 5_000, 2 * BEARABLE])
def test_it_gives_at_least_one_event_however_large(size: int) -> None:
    run, events = a_run(), words(30, "x" * size)
    write_deltas(Fence(run.pk, 1), Batch(1, events, HEAD))
    assert [pair for found in in_pages(run) for pair in numbered(found)] == list(enumerate(events, 1))
    assert numbered(whole(run.pk, 7)) == list(enumerate(events, 1))[7:]


def test_it_weighs_whole_messages_by_their_texts() -> None:
    large: Event = ["m", {"message_type": "tool_return_message", "tool_return": "x" * BEARABLE, "step_id": None}, 0]
    found, cut = bearable([Batch(1, [USAGE, large, USAGE]), Batch(4, [USAGE])])
    assert (numbered(found), cut) == ([(1, USAGE)], True)
    assert bearable([Batch(2, [large]), Batch(3, [USAGE])]) == ([Batch(2, [large])], True)


def test_what_is_bearable_is_told_by_the_text_where_that_is_at_hand() -> None:
    """A batch that fits by its text is not looked at; one that does not is still cut where it is too much."""
    events = words(400, "x" * 500)
    batches = [Batch(1 + n, events[n : n + size], HEAD) for n, size in ((0, 100), (100, 300))]
    known = [Batch(batch.first, batch.events, batch.head, encode(batch.events)) for batch in batches]
    found, cut = bearable(known)
    by_weight, _ = bearable(batches)
    assert cut
    assert found[0] == known[0]
    assert numbered(found) == numbered(by_weight)[: len(numbered(found))]
    assert 0.95 * BEARABLE < sum(weight(event) for batch in found for event in batch.events) <= BEARABLE


def test_it_knows_all_that_was_shown_of_an_open_answer() -> None:
    run = a_run()
    step = make.make_step(run, status=StepStatus.PENDING, first_seq=1, message_uuid=UUID)
    events = words(200, "x" * 2_000)
    for first in range(0, len(events), 20):
        assert write_deltas(Fence(run.pk, 1), Batch(first + 1, events[first : first + 20], HEAD))
    assert shown_of(run, step) == tuple((event[0], event[2]) for event in events)


async def read(run: Run, after: int = 0) -> tuple[Numbered, int]:
    """All that a reader is given, and the most at once."""
    found: Numbered = []
    most = 0
    async for batches in read_events(run.pk, after):
        found += numbered(batches)
        most = max(most, sum(weight(event) for batch in batches for event in batch.events))
    return found, most


@pytest.mark.parametrize(("segments", "size"), [(130, 10), (12, 40_000)], ids=["many", "large"])
async def test_it_replays_without_a_pause(monkeypatch: pytest.MonkeyPatch, segments: int, size: int) -> None:
    """A page ends where it is full; the next one is there already and needs no waiting for."""
    monkeypatch.setattr(hub_module, "LOOK_AGAIN", 60)
    events = words(segments * 3, "x" * size)

    def write() -> Run:
        run = a_run()
        for first in range(0, len(events), 3):
            write_deltas(Fence(run.pk, 1), Batch(first + 1, events[first : first + 3], HEAD))
        finish(run)
        return run

    run = await in_db(write)
    async with asyncio.timeout(20):
        found, most = await read(run)
        rest, _ = await read(run, 5)
    assert found == list(enumerate([*events, ["stop", "end_turn"], USAGE], 1))
    assert rest == found[5:]
    assert most <= BEARABLE


async def test_it_gives_a_reader_that_is_behind_no_more_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that executes a run has its last events in memory; a reader holds only some of them."""
    run, events = await in_db(a_run), words(60, "x" * 10_000)
    hub.own(run.pk, 0)
    reading = asyncio.create_task(read(run))
    await asyncio.sleep(0)
    for first in range(0, len(events), 20):
        hub.publish(run.pk, Batch(first + 1, events[first : first + 20], HEAD))
    hub.publish(run.pk, Batch(len(events) + 1, [["stop", "end_turn"], USAGE]))
    async with asyncio.timeout(20):
        found, most = await reading
    hub.disown(run.pk)
    assert found == list(enumerate([*events, ["stop", "end_turn"], USAGE], 1))
    assert most <= BEARABLE
