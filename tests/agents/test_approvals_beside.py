"""What people do beside deciding: hold, comment, give time, look at secrets, free a stuck agent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.actions import desk
from agents.actions.begin import active_run, waiting_calls
from agents.models import CallState, Decision, Message, MessageRole, ToolCall
from agents.models.toolcall import Outcome
from lettaweb.lib.problems import Problem
from tests.agents import factories as make
from tests.agents.desk import due, fresh, person, runs_after, waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return person("anna")


@pytest.fixture
def ben() -> User:
    return person("ben")


def test_it_holds_a_call_for_one_person(anna: User, ben: User) -> None:
    call = waiting()[0]
    held = desk.claim(call.uuid, anna, 60)
    assert (held.held_by, held.version) == (anna, 1)
    assert held.held_until is not None
    longer = desk.claim(call.uuid, anna, 120)
    assert longer.held_until is not None
    assert longer.held_until > held.held_until
    with pytest.raises(Problem) as caught:
        desk.claim(call.uuid, ben)
    assert caught.value.status == 409
    assert isinstance(caught.value.detail, dict)
    assert caught.value.detail["held_by"] == "anna"
    assert desk.release(call.uuid, ben).held_by == anna
    assert desk.release(call.uuid, anna).held_by is None
    assert desk.claim(call.uuid, ben).held_by == ben


def test_it_lets_a_hold_end_by_itself_and_keeps_nobody_from_deciding(anna: User, ben: User) -> None:
    call = waiting()[0]
    desk.claim(call.uuid, anna)
    ToolCall.objects.filter(pk=call.pk).update(held_until=timezone.now() - timedelta(seconds=1))
    assert desk.claim(call.uuid, ben).held_by == ben
    decided = desk.decide(call.uuid, desk.approve(), version=1, digest=call.digest, user=anna)
    assert (decided.call.held_by, decided.call.held_until) == (None, None)
    with pytest.raises(Problem) as caught:
        desk.claim(call.uuid, ben)
    assert caught.value.status == 409


@pytest.mark.parametrize(("text", "status"), [("  looks odd  ", 0), ("", 422), ("   ", 422), ("x" * 10_001, 422)])
def test_it_keeps_what_people_say(anna: User, text: str, status: int) -> None:
    call = waiting()[0]
    if not status:
        made = desk.comment(call.uuid, anna, text)
        assert (made.text, made.author_name, made.call_id) == ("looks odd", "anna", call.pk)
        return
    with pytest.raises(Problem) as caught:
        desk.comment(call.uuid, anna, text)
    assert caught.value.status == status


def test_it_gives_a_call_more_time(anna: User) -> None:
    late, never = waiting(**due(-5), overdue=True)[0], waiting()[0]
    row = desk.extend(late.uuid, anna, 30)
    assert row.expires_at is not None
    assert timedelta(minutes=29) < row.expires_at - timezone.now() <= timedelta(minutes=30)
    assert not fresh(late).overdue
    assert Decision.objects.get().kind == "extend"
    for call, minutes, status in ((never, 5, 409), (late, 0, 422), (late, 10_081, 422)):
        with pytest.raises(Problem) as caught:
            desk.extend(call.uuid, anna, minutes)
        assert caught.value.status == status


def test_it_shows_secrets_to_few_and_records_it(anna: User) -> None:
    chief = person("chief", "admin")
    call = waiting({"order": 1, "password": "hunter2"})[0]
    with pytest.raises(Problem) as caught:
        desk.reveal(call.uuid, anna)
    assert caught.value.status == 403
    assert not Decision.objects.exists()
    assert desk.reveal(call.uuid, chief) == {"order": 1, "password": "hunter2"}
    decision = Decision.objects.get()
    assert (decision.kind, decision.actor, decision.sent) == ("reveal", chief, None)
    assert "hunter2" not in str(desk.detail(call.uuid))


def test_it_frees_a_stuck_conversation_with_an_audited_denial(anna: User) -> None:
    first, second = waiting({"order": 1}, {"order": 2})
    desk.decide(first.uuid, desk.approve(), version=1, digest=first.digest, user=anna)
    conversation = first.conversation
    closed = desk.unstick(conversation, anna, "nobody knows any more")
    assert {call.pk for call in closed} == {first.pk, second.pk}
    assert {(call.state, call.outcome, call.returned) for call in map(fresh, (first, second))} == {
        (CallState.DONE, Outcome.DENIED, True)
    }
    assert Decision.objects.filter(kind="unstick", actor=anna).count() == 2
    result = Message.objects.get(role=MessageRole.TOOL)
    assert {part["id"] for part in result.parts} == {first.call_id, second.call_id}
    assert "nobody knows any more" in result.parts[1]["text"]
    assert (runs_after(first), waiting_calls(conversation), active_run(conversation)) == ([], [], None)
    assert desk.unstick(conversation, anna) == []


def test_it_frees_nothing_without_the_right() -> None:
    call = waiting()[0]
    with pytest.raises(Problem) as caught:
        desk.unstick(call.conversation, person("vera", "viewer"))
    assert caught.value.status == 403
    assert fresh(call).waiting


def test_it_frees_one_conversation_only(anna: User) -> None:
    agent = make.make_agent()
    here, there = make.default_of(agent), make.make_conversation(agent)
    stuck, other = waiting(conversation=here)[0], waiting(conversation=there)[0]
    desk.unstick(here, anna)
    assert (fresh(stuck).waiting, fresh(other).waiting) == (False, True)
