"""Many decisions at once: a result for every row, whatever becomes of its neighbours."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.actions import desk
from agents.actions.desk import Item, many, together
from agents.models import CallKind, CallState, Decision, Message, MessageRole, Run, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tests.agents.desk import fresh, item, person, runs_after, waiting
from tests.agents.desk import many as many_calls

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return person("anna")


def statuses(results: list[desk.RowResult]) -> list[str]:
    return [result.status for result in results]


def test_it_decides_many_and_creates_their_runs(anna: User) -> None:
    calls = many_calls(30)
    results = desk.decide_many([item(call) for call in calls], desk.approve(), user=anna)
    assert statuses(results) == ["done"] * 30
    assert desk.summary(results, "approve") == "30 approved"
    assert Run.objects.filter(status="created").count() == 30
    assert Message.objects.filter(role=MessageRole.APPROVAL).count() == 30
    assert Decision.objects.filter(kind="approve", actor=anna, via="desk").count() == 30
    assert {call.state for call in map(fresh, calls)} == {CallState.READY}


def test_it_stores_the_same_as_one_by_one(anna: User) -> None:
    single, bulk = waiting({"order": 1}, {"order": 2}), waiting({"order": 1}, {"order": 2})
    for call in single:
        desk.decide(call.uuid, desk.deny("no"), version=1, digest=call.digest, user=anna)
    desk.decide_many([item(call) for call in bulk], desk.deny("no"), user=anna)
    names = (
        "state",
        "outcome",
        "version",
        "decided_by_id",
        "reason",
        "result_ok",
        "result_text",
        "overdue",
        "held_by_id",
    )
    assert [[getattr(fresh(call), name) for name in names] for call in single] == [
        [getattr(fresh(call), name) for name in names] for call in bulk
    ]
    one, other = runs_after(single[0])[0], runs_after(bulk[0])[0]
    for name in ("status", "driver", "background", "options", "created_by_id", "epoch", "owner_id"):
        assert getattr(one, name) == getattr(other, name), name
    responses = [Message.objects.get(run=run) for run in (one, other)]
    sent = [[{**part["sent"], "tool_call_id": ""} for part in row.parts] for row in responses]
    assert sent[0] == sent[1]
    assert responses[0].tokens > 0


def test_it_tells_of_every_row_what_became_of_it(anna: User) -> None:
    ben = person("ben")
    good, decided, changed, client, mine = (waiting()[0] for _ in range(5))
    ToolCall.objects.filter(pk=client.pk).update(kind=CallKind.CLIENT, tool=None)
    desk.decide(decided.uuid, desk.deny(), version=1, digest=decided.digest, user=ben)
    desk.decide(mine.uuid, desk.approve(), version=1, digest=mine.digest, user=anna)
    unknown = Item(uuid.uuid4(), 1, "x")
    asked = [
        item(good),
        item(decided),
        Item(changed.uuid, 7, changed.digest),
        item(client),
        unknown,
        item(mine),
        item(good),
    ]
    results = desk.decide_many(asked, desk.approve(), user=anna)
    assert statuses(results) == ["done", "already", "changed", "failed", "missing", "done", "done"]
    assert [result.uuid for result in results] == [one.uuid for one in asked]
    assert desk.summary(results, "approve") == "3 approved, 1 already decided, 1 changed meanwhile, 2 failed"
    assert "denied by ben" in results[1].message
    assert len(runs_after(good)) == len(runs_after(mine)) == 1
    assert fresh(changed).waiting


def test_it_completes_sets_once_whatever_the_order(anna: User) -> None:
    sets = [waiting({"order": 1}, {"order": 2}, {"order": 3}) for _ in range(3)]
    mixed = [sets[n][place] for place in (2, 0, 1) for n in range(3)]
    part = mixed[:-1]
    desk.decide_many([item(call) for call in part], desk.approve(), user=anna)
    assert [len(runs_after(calls[0])) for calls in sets] == [1, 1, 0]
    desk.decide_many([item(mixed[-1])], desk.deny(), user=anna)
    assert [len(runs_after(calls[0])) for calls in sets] == [1, 1, 1]


def test_it_decides_one_by_one_when_a_row_moved_meanwhile(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    ben = person("ben")
    calls = many_calls(4)
    real = together.store

    def late(pairs: list[together.Pair], sender: object) -> together.Stored:
        monkeypatch.setattr(many, "store", real)
        desk.decide(calls[1].uuid, desk.deny("no"), version=1, digest=calls[1].digest, user=ben)
        return real(pairs, sender)  # type: ignore[arg-type]

    monkeypatch.setattr(many, "store", late)
    results = desk.decide_many([item(call) for call in calls], desk.approve(), user=anna)
    assert statuses(results) == ["done", "already", "done", "done"]
    assert fresh(calls[1]).outcome == Outcome.DENIED
    assert [len(runs_after(call)) for call in calls] == [1, 1, 1, 1]


def test_it_needs_few_statements_for_a_chunk(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "FIRST_CHUNK", 20)
    calls = many_calls(20)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        desk.decide_many([item(call) for call in calls], desk.approve(), user=anna)
    assert len(queries) <= 14


def test_it_refuses_edited_arguments_for_many(anna: User) -> None:
    call = waiting()[0]
    with pytest.raises(Problem) as caught:
        desk.decide_many([item(call)], desk.approve('{"order": 1}'), user=anna)
    assert caught.value.status == 422
    assert desk.decide_many([], desk.approve(), user=anna) == []
    assert desk.summary([], "approve") == "nothing to decide"
