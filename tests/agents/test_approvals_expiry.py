"""What the clock does with calls that nobody decides."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.utils import timezone

from agents import tasks
from agents.actions import desk
from agents.actions.desk import clock
from agents.models import CallState, Decision, Message, MessageRole, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tests.agents.desk import due, fresh, item, person, runs_after, waiting

pytestmark = pytest.mark.django_db


def test_it_expires_a_call_and_goes_on() -> None:
    call = waiting(**due(-1))[0]
    assert tasks.expire_calls() == {"denied": 1, "overdue": 0}
    row = fresh(call)
    assert (row.state, row.outcome, row.result_ok, row.decided_by) == (CallState.DONE, Outcome.EXPIRED, False, None)
    assert "expired" in row.result_text
    assert "denied it" in row.result_text
    decision = Decision.objects.get()
    assert (decision.kind, decision.actor, decision.actor_name, decision.via) == ("expire", None, "clock", "clock")
    assert len(runs_after(call)) == 1
    sent = Message.objects.get(role=MessageRole.APPROVAL).parts[0]["sent"]
    assert (sent["approve"], sent["tool_call_id"]) == (False, call.call_id)
    assert tasks.expire_calls() == {"denied": 0, "overdue": 0}
    assert len(runs_after(call)) == 1


@pytest.mark.parametrize("fields", [{}, due(500), {**due(-5), "state": CallState.READY}])
def test_it_leaves_alone_what_is_not_due(fields: dict[str, Any]) -> None:
    call = waiting(**fields)[0]
    assert tasks.expire_calls() == {"denied": 0, "overdue": 0}
    assert fresh(call).version == 1


def test_it_marks_overdue_once_and_lets_people_decide() -> None:
    anna = person()
    call = waiting(**due(-1), expire_action="pause")[0]
    assert tasks.expire_calls() == {"denied": 0, "overdue": 1}
    assert tasks.expire_calls() == {"denied": 0, "overdue": 0}
    row = fresh(call)
    assert (row.overdue, row.waiting) == (True, True)
    assert [decision.kind for decision in Decision.objects.all()] == ["overdue"]
    decided = desk.decide(call.uuid, desk.approve(), version=row.version, digest=row.digest, user=anna)
    assert decided.run is not None


def test_it_waits_for_the_others_of_a_set() -> None:
    anna = person()
    first, second = waiting({"order": 1}, {"order": 2})
    ToolCall.objects.filter(pk=first.pk).update(**due(-1))
    tasks.expire_calls()
    assert (fresh(first).outcome, runs_after(first)) == (Outcome.EXPIRED, [])
    with pytest.raises(Problem) as caught:
        desk.undo(first.uuid, version=fresh(first).version, user=anna)
    assert caught.value.status == 409
    decided = desk.decide(second.uuid, desk.approve(), version=1, digest=second.digest, user=anna)
    assert runs_after(first) == [decided.run]


def test_it_tells_who_comes_too_late_that_it_expired() -> None:
    call = waiting(**due(-1))[0]
    tasks.expire_calls()
    with pytest.raises(Problem) as caught:
        desk.decide(call.uuid, desk.approve(), version=1, digest=call.digest, user=person())
    assert isinstance(caught.value.detail, dict)
    assert (caught.value.status, caught.value.detail["decision"]) == (409, "expire")
    assert "expired by clock" in caught.value.detail["message"]


def test_it_fails_closed_before_the_clock_comes_by() -> None:
    anna = person()
    late, pausing, extended = waiting(**due(-1))[0], waiting(**due(-1), expire_action="pause")[0], waiting(**due(-1))[0]
    with pytest.raises(Problem) as caught:
        desk.decide(late.uuid, desk.approve(), version=1, digest=late.digest, user=anna)
    assert isinstance(caught.value.detail, dict)
    assert (caught.value.status, caught.value.detail["code"]) == (409, "EXPIRED")
    results = desk.decide_many([item(late), item(pausing)], desk.approve(), user=anna)
    assert [result.status for result in results] == ["already", "done"]
    desk.extend(extended.uuid, anna, 5)
    assert desk.decide(extended.uuid, desk.approve(), version=1, digest=extended.digest, user=anna).run is not None
    assert tasks.expire_calls() == {"denied": 1, "overdue": 0}


def test_it_goes_on_after_a_call_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [waiting(**due(-1))[0] for _ in range(3)]
    real = clock.record

    def record(call: ToolCall, *given: object) -> Decision:
        if call.pk == calls[0].pk:
            raise ValueError("broken row")
        return real(call, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(clock, "record", record)
    assert desk.expire_due(timezone.now()).denied == 2
    assert [fresh(call).waiting for call in calls] == [True, False, False]


def test_it_stops_in_time_and_finds_the_rest_later() -> None:
    for _ in range(3):
        waiting(**due(-1))
    assert desk.expire_due(timezone.now(), seconds=-1).denied == 0
    began = time.monotonic()
    assert desk.expire_due(timezone.now(), seconds=30).denied == 3
    assert time.monotonic() - began < 10
