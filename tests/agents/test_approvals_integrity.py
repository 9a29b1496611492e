"""What runs is what was shown, and only those decide who may: also when somebody tries another way."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.actions import desk
from agents.actions.send import send
from agents.loop.course import course_of
from agents.loop.offer import toolbox
from agents.loop.settle import UNDONE_SETTINGS, _must_not_run
from agents.models import CallKind, Decision, Run, ToolCall
from agents.serializers.requests import message_request
from lettaweb.lib.problems import Problem
from tests.agents.desk import fresh, person, runs_after, waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return person("anna")


def why_not(call: ToolCall) -> str:
    """Why the loop would not run an approved call, "" when it would."""
    run = Run.objects.select_related("conversation", "agent").get(pk=runs_after(call)[0].pk)
    row = ToolCall.objects.select_related("tool").get(pk=call.pk)
    return _must_not_run(toolbox(course_of(run)), row)


@pytest.mark.parametrize("edited", [None, '{"order": 8}'])
def test_it_runs_what_was_approved(anna: User, edited: str | None) -> None:
    call = waiting()[0]
    desk.decide(call.uuid, desk.approve(edited), version=1, digest=call.digest, user=anna)
    assert why_not(call) == ""


@pytest.mark.parametrize(
    ("edited", "tampered"),
    [
        (None, {"arguments": '{"order": 7, "amount": 9999}'}),
        (None, {"edited_arguments": '{"order": 7, "amount": 9999}'}),
        ('{"order": 8}', {"edited_arguments": '{"order": 7, "amount": 9999}'}),
        ('{"order": 8}', {"arguments": '{"order": 9}'}),
    ],
)
def test_it_does_not_run_what_nobody_saw(anna: User, edited: str | None, tampered: dict[str, str]) -> None:
    call = waiting()[0]
    desk.decide(call.uuid, desk.approve(edited), version=1, digest=call.digest, user=anna)
    ToolCall.objects.filter(pk=call.pk).update(**tampered)
    assert why_not(call) == UNDONE_SETTINGS


def over_the_wire(call: ToolCall, user: Any, verdict: dict[str, Any]) -> Any:
    body = {"messages": [{"type": "approval", "approvals": [{"tool_call_id": call.call_id, **verdict}]}]}
    return send(call.conversation, message_request(body), actor=user)


@pytest.mark.parametrize("verdict", [{"approve": True}, {"approve": False}, {"tool_return": "x", "status": "success"}])
@pytest.mark.parametrize("role", ["viewer", "builder"])
def test_it_lets_nobody_decide_over_the_wire_without_the_right(role: str, verdict: dict[str, Any]) -> None:
    call = waiting()[0]
    with pytest.raises(Problem) as caught:
        over_the_wire(call, person("vera", role), verdict)
    assert caught.value.status == 403
    assert fresh(call).waiting
    assert not Decision.objects.exists()


def test_it_takes_the_result_of_a_clients_own_tool_from_whoever_may_send() -> None:
    call = waiting(kind=CallKind.CLIENT)[0]
    over_the_wire(call, person("bob", "builder"), {"tool_return": "a.txt", "status": "success"})
    assert fresh(call).result_text == "a.txt"


def test_it_tells_a_client_who_decided_otherwise_and_records_nothing(anna: User) -> None:
    first, second = waiting({"order": 1}, {"order": 2})
    desk.decide(first.uuid, desk.deny("no"), version=1, digest=first.digest, user=anna)
    body = {
        "messages": [
            {"type": "approval", "approvals": [
                {"tool_call_id": first.call_id, "approve": True}, {"tool_call_id": second.call_id, "approve": True},
            ]},
        ]
    }  # fmt: skip
    with pytest.raises(Problem) as caught:
        send(first.conversation, message_request(body), actor=person("ben"))
    assert isinstance(caught.value.detail, dict)
    assert (caught.value.status, caught.value.detail["decided_by"], caught.value.detail["decision"]) == (
        409, "anna", "deny",
    )  # fmt: skip
    assert (fresh(second).waiting, Decision.objects.count()) == (True, 1)
    body["messages"][0]["approvals"][0]["approve"] = False  # type: ignore[index]
    assert send(first.conversation, message_request(body), actor=person("ben")).run in runs_after(first)
