"""One decision about one call: what is recorded, what goes on, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.actions import desk
from agents.models import CallKind, CallState, Decision, DecisionKind, Message, MessageRole, RunStatus, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tests.agents.desk import GIVEN, due, fresh, person, runs_after, waiting
from tools import arguments

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return person("anna")


@pytest.fixture
def ben() -> User:
    return person("ben")


def decide(call: ToolCall, verdict: desk.Verdict, user: User, **seen: Any) -> desk.Decided:
    wanted = {"version": call.version, "digest": call.digest, **seen}
    return desk.decide(call.uuid, verdict, user=user, **wanted)


def refusal(call: ToolCall, verdict: desk.Verdict, user: User, **seen: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        decide(call, verdict, user, **seen)
    return caught.value


def test_it_creates_the_run_that_goes_on_with_the_decision(anna: User) -> None:
    call = waiting()[0]
    decided = decide(call, desk.approve(note="fine"), anna)
    assert decided.run is not None
    assert (decided.run.status, decided.run.owner_id, decided.run.turn_id) == (RunStatus.CREATED, None, call.turn_id)
    row = fresh(call)
    assert (row.state, row.outcome, row.decided_by, row.version) == (CallState.READY, "", anna, 2)
    decision = Decision.objects.get()
    assert (decision.kind, decision.actor, decision.via, decision.digest) == ("approve", anna, "desk", call.digest)
    response = Message.objects.get(role=MessageRole.APPROVAL)
    sent = {"type": "approval", "tool_call_id": call.call_id, "approve": True, "reason": "fine"}
    assert (response.run, response.parts) == (decided.run, [{"type": "decision", "sent": sent}])


def test_it_tells_the_loser_who_decided_and_when(anna: User, ben: User) -> None:
    call = waiting()[0]
    decide(call, desk.deny("no"), anna)
    problem = refusal(call, desk.approve(), ben)
    assert problem.status == 409
    assert isinstance(problem.detail, dict)
    at = fresh(call).decided_at
    assert at is not None
    assert (problem.detail["code"], problem.detail["decision"], problem.detail["decided_by"]) == (
        "ALREADY_DECIDED", "deny", "anna",
    )  # fmt: skip
    assert problem.detail["decided_at"][:19] == at.isoformat()[:19]
    assert "denied by anna" in problem.detail["message"]
    assert (Decision.objects.count(), len(runs_after(call))) == (1, 1)


@pytest.mark.parametrize("verdict", [desk.approve(), desk.deny("no"), desk.answer("42"), desk.approve('{"order": 8}')])
def test_it_answers_the_same_again_to_the_same_person(anna: User, ben: User, verdict: desk.Verdict) -> None:
    call = waiting()[0]
    first = decide(call, verdict, anna)
    again = decide(call, verdict, anna)
    assert (again.run, again.repeated, again.call.state) == (first.run, True, first.call.state)
    assert (Decision.objects.count(), len(runs_after(call))) == (1, 1)
    assert refusal(call, verdict, ben).status == 409
    assert refusal(call, desk.deny("something else"), anna).status == 409


@pytest.mark.parametrize("seen", [{"version": 2}, {"digest": "0" * 64}])
def test_it_refuses_what_was_not_seen(anna: User, seen: dict[str, Any]) -> None:
    call = waiting()[0]
    problem = refusal(call, desk.approve(), anna, **seen)
    assert isinstance(problem.detail, dict)
    assert (problem.status, problem.detail["code"]) == (409, "CHANGED")
    assert fresh(call).waiting
    assert not Decision.objects.exists()


def test_it_runs_nothing_of_a_set_until_all_of_it_is_decided(anna: User, ben: User) -> None:
    calls = waiting({"order": 1}, {"order": 2}, {"order": 3})
    assert decide(calls[2], desk.deny("no"), anna).run is None
    assert decide(calls[0], desk.approve(), ben).run is None
    assert runs_after(calls[0]) == []
    last = decide(calls[1], desk.answer("done by hand"), anna)
    assert runs_after(calls[0]) == [last.run]
    response = Message.objects.get(role=MessageRole.APPROVAL)
    assert [part["sent"]["tool_call_id"] for part in response.parts] == [call.call_id for call in calls]
    assert [call.state for call in map(fresh, calls)] == [CallState.READY, CallState.DONE, CallState.DONE]


@pytest.mark.parametrize(
    ("state", "verdict", "back"),
    [
        (CallState.PENDING, desk.approve('{"order": 8}'), CallState.PENDING),
        (CallState.PENDING, desk.deny("no"), CallState.PENDING),
        (CallState.PENDING, desk.answer("x", ok=False), CallState.PENDING),
        (CallState.UNKNOWN, desk.approve(), CallState.UNKNOWN),
        (CallState.UNKNOWN, desk.deny(), CallState.UNKNOWN),
        (CallState.UNKNOWN, desk.answer("it did"), CallState.UNKNOWN),
    ],
)
def test_it_takes_a_decision_back_until_the_last(
    anna: User, ben: User, state: str, verdict: desk.Verdict, back: str
) -> None:
    first, second = waiting({"order": 1}, {"order": 2}, state=state)
    decided = decide(first, verdict, anna).call
    undone = desk.undo(first.uuid, version=decided.version, user=ben)
    row = fresh(first)
    assert (row.state, row.outcome, row.decided_by, row.edited_arguments, row.result_ok) == (back, "", None, None, None)
    assert [d.kind for d in Decision.objects.filter(call=first).order_by("pk")][-1] == DecisionKind.UNDO
    decide(undone, desk.deny("second thoughts"), ben)
    last = decide(second, desk.approve(), anna)
    assert last.run is not None
    response = Message.objects.get(role=MessageRole.APPROVAL)
    assert [part["sent"].get("reason") for part in response.parts] == ["second thoughts", None]
    with pytest.raises(Problem) as caught:
        desk.undo(first.uuid, version=fresh(first).version, user=ben)
    assert caught.value.status == 409


def test_it_takes_nothing_back_that_nobody_decided(anna: User) -> None:
    first, _second = waiting({"order": 1}, {"order": 2})
    with pytest.raises(Problem):
        desk.undo(first.uuid, version=1, user=anna)
    decided = decide(first, desk.approve(), anna).call
    with pytest.raises(Problem):
        desk.undo(first.uuid, version=decided.version - 1, user=anna)


@pytest.mark.parametrize(
    ("given", "edited", "stored"),
    [
        (GIVEN, json.dumps(GIVEN), None),
        (GIVEN, '{"amount": 480.5, "order": 7}', None),
        ({"order": 2**53 + 1}, '{"order": 9007199254740993}', None),
        ({"order": 1, "note": None}, '{"order": 1, "note": null}', None),
        ({"order": 1, "note": None}, '{"order": 1}', {"order": 1}),
        ({"order": 1}, '{"order": 9007199254740993, "amount": 1.0}', {"order": 9007199254740993, "amount": 1.0}),
        ({"order": 1}, '{"order": 1, "note": "é\\n\\"x\\" 😀"}', {"order": 1, "note": 'é\n"x" 😀'}),
    ],
)
def test_it_keeps_edited_arguments_exactly(anna: User, given: Any, edited: str, stored: Any) -> None:
    call = waiting(given)[0]
    decide(call, desk.approve(edited), anna)
    row, decision = fresh(call), Decision.objects.get()
    if stored is None:
        assert (row.edited_arguments, decision.kind) == (None, DecisionKind.APPROVE)
        return
    assert row.edited_arguments is not None
    assert json.loads(row.edited_arguments) == stored
    assert (decision.kind, decision.before, decision.after) == ("edit", call.arguments, row.edited_arguments)
    assert arguments.digest(json.loads(row.arguments)) == row.digest


@pytest.mark.parametrize(
    "edited", ['{"order": "7"}', "{}", '{"order": 7, "other": 1}', '{"order": 7, "amount": "x"}', "[1]", "nonsense", ""]
)
def test_it_refuses_arguments_that_the_tool_does_not_take(anna: User, edited: str) -> None:
    call = waiting()[0]
    assert refusal(call, desk.approve(edited), anna).status == 422
    assert fresh(call).waiting


def test_it_never_approves_what_runs_at_the_client(anna: User) -> None:
    call = waiting(kind=CallKind.CLIENT)[0]
    assert refusal(call, desk.approve(), anna).status == 400
    assert fresh(call).waiting
    decided = decide(call, desk.answer("a.txt"), anna)
    assert (decided.call.outcome, decided.call.result_text, decided.call.result_ok) == (Outcome.ANSWERED, "a.txt", True)


def test_it_tells_each_ending_in_its_own_words(anna: User) -> None:
    denied, expired, unknown = waiting()[0], waiting(**due(-1))[0], waiting(state=CallState.UNKNOWN)[0]
    decide(denied, desk.deny("too much"), anna)
    decide(unknown, desk.deny(), anna)
    from django.utils import timezone

    desk.expire_due(timezone.now())
    rows = [fresh(call) for call in (denied, expired, unknown)]
    assert [row.outcome for row in rows] == [Outcome.DENIED, Outcome.EXPIRED, Outcome.INTERRUPTED]
    assert len({row.result_text for row in rows}) == 3
    assert "too much" in rows[0].result_text
    assert "Do not call it again" in rows[0].result_text


@pytest.mark.parametrize(
    ("verdict", "kind", "state", "outcome"),
    [
        (desk.answer("refunded"), DecisionKind.HAPPENED, CallState.DONE, Outcome.ANSWERED),
        (desk.approve(), DecisionKind.RERUN, CallState.READY, Outcome.NONE),
        (desk.deny(), DecisionKind.TELL, CallState.DONE, Outcome.INTERRUPTED),
    ],
)
def test_it_settles_a_call_of_unknown_outcome(
    anna: User, verdict: desk.Verdict, kind: str, state: str, outcome: str
) -> None:
    call = waiting(state=CallState.UNKNOWN)[0]
    decided = decide(call, verdict, anna)
    row = fresh(call)
    assert (Decision.objects.get().kind, row.state, row.outcome) == (kind, state, outcome)
    assert decided.run is not None


def test_it_does_not_know_other_calls(anna: User) -> None:
    call = waiting()[0]
    ToolCall.objects.filter(pk=call.pk).delete()
    assert refusal(call, desk.approve(), anna).status == 404
