"""Changes of the queue over a websocket: what happened, by whom, and never with arguments in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.actions import desk
from agents.actions.cancel import cancel_conversation
from agents.consumers import watch
from agents.events.wake import waker
from agents.models import ToolCall
from lettaweb.lib.db import in_db
from tests.agents.desk import due, item, many, person, waiting
from tests.agents.sockets import Reader, connected, eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def anna() -> User:
    return person("anna")


@pytest.fixture(autouse=True)
def _own_watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watch, "SHORTEST", 0.01)
    yield
    watch.queue.changes.clear()


async def next_change(reader: Reader) -> dict[str, Any]:
    frame = await reader.until("changes")
    assert len(frame["changes"]) == 1, frame
    found: dict[str, Any] = frame["changes"][0]
    return found


def settle(call: ToolCall, user: User, verdict: desk.Verdict) -> desk.Decided:
    fresh = ToolCall.objects.get(pk=call.pk)
    return desk.decide(fresh.uuid, verdict, version=fresh.version, digest=fresh.digest, user=user)


def ask(**fields: Any) -> ToolCall:
    call = waiting({"order": 7, "password": "hunter2"}, **fields)[0]
    waker.heard("approvals", call.conversation_id)
    return call


async def test_it_tells_of_everything_that_happens_to_a_call(anna: User) -> None:
    async with connected("/ws/approvals/", anna) as reader:
        assert (await reader.frame())["waiting"] == 0
        call = await in_db(ask)
        arrived = await next_change(reader)
        assert (arrived["type"], arrived["call"]["id"], arrived["call"]["version"]) == ("arrived", call.wire_id, 1)
        assert arrived["call"]["sentence"].startswith("billing wants to refund: order 7")
        assert "hunter2" not in str(arrived)
        await in_db(desk.claim, call.uuid, anna)
        held = await next_change(reader)
        assert (held["type"], held["call"]["held_by"]) == ("held", "anna")
        await in_db(desk.release, call.uuid, anna)
        assert (await next_change(reader))["type"] == "released"
        await in_db(desk.comment, call.uuid, anna, "odd")
        assert (await next_change(reader))["type"] == "changed"
        await in_db(settle, call, anna, desk.deny("no"))
        decided = await next_change(reader)
        assert (decided["type"], decided["call"]["by"], decided["call"]["outcome"]) == ("decided", "anna", "denied")


async def test_it_tells_endings_apart(anna: User) -> None:
    expiring = await in_db(ask, **due(-1))
    cancelled = await in_db(ask)
    pausing = await in_db(ask, **due(-1), expire_action="pause")
    async with connected("/ws/approvals/", anna) as reader:
        assert (await reader.until("hello"))["waiting"] == 3
        await in_db(desk.expire_due, timezone.now())
        found = {change["call"]["id"]: change["type"] for change in (await reader.until("changes"))["changes"]}
        while len(found) < 2:
            found |= {change["call"]["id"]: change["type"] for change in (await reader.until("changes"))["changes"]}
        assert found == {expiring.wire_id: "expired", pausing.wire_id: "overdue"}
        await in_db(cancel_conversation, cancelled.conversation, anna)
        assert (await next_change(reader))["type"] == "cancelled"


async def test_it_shows_a_decision_that_was_taken_back(anna: User) -> None:
    first, _ = await in_db(waiting, {"order": 1}, {"order": 2})
    async with connected("/ws/approvals/", anna) as reader:
        await reader.until("hello")
        decided = await in_db(settle, first, anna, desk.approve())
        assert (await next_change(reader))["type"] == "decided"
        await in_db(desk.undo, first.uuid, version=decided.call.version, user=anna)
        back = await next_change(reader)
        assert (back["type"], back["call"]["version"], back["call"]["state"]) == ("arrived", 3, "pending")


async def test_it_tells_every_reader_and_stops_looking_after_the_last(anna: User) -> None:
    vera = await in_db(person, "vera", "viewer")
    async with connected("/ws/approvals/", anna) as one, connected("/ws/approvals/", vera) as two:
        await one.until("hello")
        await two.until("hello")
        call = await in_db(ask)
        assert [(await next_change(reader))["call"]["id"] for reader in (one, two)] == [call.wire_id] * 2
    await eventually(lambda: watch.queue._task is None)


async def test_it_notices_without_a_wake_up(anna: User) -> None:
    """What another process commits is seen in the version of the database file."""
    async with connected("/ws/approvals/", anna) as reader:
        await reader.until("hello")
        call = (await in_db(waiting))[0]
        assert (await next_change(reader))["call"]["id"] == call.wire_id


async def test_it_tells_who_comes_back_what_was_missed(anna: User) -> None:
    gone, same, newest = [await in_db(ask) for _ in range(3)]
    await in_db(settle, gone, anna, desk.deny("no"))
    late = await in_db(ask)
    async with connected("/ws/approvals/", anna) as reader:
        await reader.until("hello")
        shown = {call.wire_id: 1 for call in (gone, same, newest)}
        await reader.say({"type": "sync", "calls": shown, "newest": newest.wire_id})
        frame = await reader.until("changes")
        assert frame["sync"] is True
        assert [(change["type"], change["call"]["id"]) for change in frame["changes"]] == [
            ("decided", gone.wire_id), ("arrived", late.wire_id),
        ]  # fmt: skip


async def test_it_says_when_too_much_was_missed(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.consumers.approvals.MOST_MISSED", 2)
    await in_db(many, 3)
    async with connected("/ws/approvals/", anna) as reader:
        await reader.until("hello")
        await reader.say({"type": "sync", "calls": {}, "newest": None})
        assert (await reader.until("reset"))["waiting"] == 3
        wrong: list[Any] = [
            {"calls": []},
            {"calls": {"x": 1}},
            {"calls": {}, "newest": "x"},
            {"calls": {}, "newest": 5},
        ]
        for fields in wrong:
            await reader.say({"type": "sync", **fields})
            assert (await reader.until("error"))["code"] == "bad_field"


async def test_it_tells_of_many_decisions_in_few_frames(anna: User) -> None:
    calls = await in_db(many, 30)
    async with connected("/ws/approvals/", anna) as reader:
        await reader.until("hello")
        await in_db(lambda: desk.decide_many([item(call) for call in calls], desk.approve(), user=anna))
        told: set[str] = set()
        frames = 0
        while len(told) < 30:
            frame = await reader.until("changes")
            frames += 1
            told |= {change["call"]["id"] for change in frame["changes"]}
        assert told == {call.wire_id for call in calls}
        assert frame["waiting"] == 0
