"""Decisions by form, without scripts and with: one decision, the next call, and never another call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from agents.models import CallState, Decision, DecisionKind, Run, RunStatus, ToolCall
from agents.models.toolcall import Outcome
from tests.pages.rows import add_call, decide, item, make_tool, shown, text_of, waiting_call

pytestmark = pytest.mark.django_db


def fresh(call: ToolCall) -> ToolCall:
    return ToolCall.objects.get(pk=call.pk)


def test_it_approves_and_opens_the_next_call(operator: Client, call: ToolCall) -> None:
    following = waiting_call()
    response = decide(operator, call, "approve")
    assert response.status_code == 302
    assert response["Location"].startswith(f"/approvals/{following.wire_id}/")
    assert fresh(call).state == CallState.READY
    assert Run.objects.filter(conversation=call.conversation, status=RunStatus.CREATED).count() == 1
    page = text_of(operator.get(response["Location"]))
    assert "Approved: " in page
    assert following.agent.name in page


def test_it_goes_back_to_the_list_after_the_last(operator: Client, call: ToolCall) -> None:
    response = decide(operator, call, "deny", {"preset": "not_allowed", "reason": "Ask legal."})
    assert response["Location"] == f"/approvals/?done={call.wire_id}"
    assert fresh(call).outcome == Outcome.DENIED
    assert fresh(call).reason == "This is not allowed. Ask legal."
    assert "All clear" in text_of(operator.get(response["Location"]))


def test_it_answers_in_place_of_the_tool(operator: Client, call: ToolCall) -> None:
    assert 'name="result"' in text_of(operator.get(f"/approvals/{call.wire_id}/?panel=answer"))
    decide(operator, call, "answer", {"result": "line 1\r\nline 2", "ok": "no"})
    assert (fresh(call).outcome, fresh(call).result_text, fresh(call).result_ok) == (
        Outcome.ANSWERED,
        "line 1\nline 2",
        False,
    )


def test_it_sends_a_part_of_the_page_to_scripts(operator: Client, call: ToolCall) -> None:
    following = waiting_call()
    response = decide(operator, call, "approve", htmx=True)
    assert response.status_code == 200
    assert response["HX-Push-Url"] == f"/approvals/{following.wire_id}/"
    page = text_of(response)
    assert "<html" not in page
    assert f'data-detail="{following.wire_id}"' in page


def test_it_opens_the_call_that_the_page_had_next_while_it_waits(operator: Client, call: ToolCall) -> None:
    waiting_call(risk="high")
    wanted = waiting_call(risk="low")
    response = decide(operator, call, "approve", {"next": wanted.wire_id})
    assert response["Location"].startswith(f"/approvals/{wanted.wire_id}/")


@pytest.mark.parametrize("htmx", [False, True])
def test_it_tells_the_second_person_who_was_faster(operator: Client, other: Client, call: ToolCall, htmx: bool) -> None:
    decide(operator, call, "approve")
    response = decide(other, call, "deny", htmx=htmx)
    page = text_of(response)
    assert response.status_code == 409
    assert "Already decided by olga" in page
    assert fresh(call).state == CallState.READY
    assert "<button" not in page.partition('id="actions"')[2]
    assert Decision.objects.filter(call=call).count() == 1


def test_it_never_decides_another_version_or_call(operator: Client, call: ToolCall) -> None:
    waiting_call()
    for wrong in ({"version": call.version + 1}, {"digest": "f" * 64}):
        response = operator.post(f"/approvals/{call.wire_id}/decide/", shown(call, action="approve") | wrong)
        assert response.status_code == 409
        assert "has changed since it was shown" in text_of(response)
    assert Decision.objects.count() == 0


@pytest.mark.parametrize("wrong", [{}, {"version": "1"}, {"version": "x", "digest": "0" * 64}])
def test_it_refuses_forms_that_do_not_say_what_they_show(
    operator: Client, call: ToolCall, wrong: dict[str, str]
) -> None:
    assert operator.post(f"/approvals/{call.wire_id}/decide/", {"action": "approve", **wrong}).status_code == 400
    assert fresh(call).state == CallState.PENDING


def test_it_refuses_forms_without_a_decision(operator: Client, call: ToolCall) -> None:
    for action in ("", "yes", "true"):
        assert decide(operator, call, action).status_code == 400
    assert fresh(call).state == CallState.PENDING


def test_it_never_decides_by_get(operator: Client, call: ToolCall) -> None:
    for path in ("decide/", "decide/?action=approve", "?panel=confirm&action=approve", "?action=approve"):
        operator.get(f"/approvals/{call.wire_id}/{path}")
    assert fresh(call).state == CallState.PENDING


def test_it_asks_once_more_before_high_risk(operator: Client) -> None:
    call = waiting_call(risk="high")
    first = decide(operator, call, "approve")
    assert first.status_code == 200
    assert "High risk." in text_of(first)
    assert fresh(call).state == CallState.PENDING
    decide(operator, call, "approve", {"confirm": "yes"})
    assert fresh(call).state == CallState.READY


def test_it_asks_once_more_before_high_risk_with_changes(operator: Client) -> None:
    call = waiting_call(risk="high")
    first = decide(operator, call, "edit", {"arg:amount": "12.5"})
    assert first.status_code == 200
    assert 'value="12.5"' in text_of(first)
    assert fresh(call).state == CallState.PENDING
    decide(operator, call, "edit", {"confirm": "yes", "arg:amount": "12.5"})
    assert json.loads(fresh(call).runs_with)["amount"] == 12.5


def test_it_settles_calls_of_unknown_outcome_in_three_ways(operator: Client) -> None:
    ways: list[tuple[str, dict[str, str], DecisionKind, CallState]] = [
        ("approve", {}, DecisionKind.RERUN, CallState.READY),
        ("deny", {"reason": "no trace of it"}, DecisionKind.TELL, CallState.DONE),
        ("answer", {"result": "refunded"}, DecisionKind.HAPPENED, CallState.DONE),
    ]
    for action, fields, kind, state in ways:
        call = waiting_call(state=CallState.UNKNOWN, started_at=None)
        page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
        assert all(button in page for button in ("It happened", "Run it", "Tell the agent"))
        decide(operator, call, action, fields)
        assert (Decision.objects.get(call=call).kind, fresh(call).state) == (kind, state)


def test_it_takes_a_decision_back_until_the_last_of_the_set(operator: Client, call: ToolCall) -> None:
    second = add_call(call.turn, tool=make_tool(), message=call.message)
    page = text_of(operator.get(f"/approvals/{second.wire_id}/"))
    assert "one of 2 calls that were asked together" in page
    response = decide(operator, call, "approve")
    assert "Undo" in text_of(operator.get(response["Location"]))
    operator.post(f"/approvals/{call.wire_id}/undo/", shown(fresh(call)))
    assert fresh(call).state == CallState.PENDING
    decide(operator, fresh(call), "approve")
    response = decide(operator, second, "approve")
    assert "Undo" not in text_of(operator.get(response["Location"]))
    assert operator.post(f"/approvals/{call.wire_id}/undo/", shown(fresh(call))).status_code == 409


def test_it_offers_no_yes_for_what_runs_at_the_client(operator: Client) -> None:
    call = waiting_call(kind="client", tool=None)
    page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert 'data-key="a"' not in page
    assert 'data-key="r"' in page


# --- many at once ------------------------------------------------------------------------------------


def test_it_decides_many_with_a_result_for_each(operator: Client, other: Client) -> None:
    calls = [waiting_call() for _ in range(3)]
    stale = item(calls[2])
    decide(other, calls[2], "deny")
    response = operator.post("/approvals/bulk/", {"item": [item(calls[0]), item(calls[1]), stale], "action": "approve"})
    page = text_of(response)
    assert "2 approved, 1 already decided" in page
    assert "by otto" in page
    assert [fresh(call).state for call in calls] == [CallState.READY, CallState.READY, CallState.DONE]


def test_it_shows_what_is_selected_when_no_action_is_named(operator: Client) -> None:
    calls = [waiting_call() for _ in range(2)]
    page = text_of(operator.post("/approvals/bulk/", {"item": [item(call) for call in calls]}))
    assert "2 calls selected" in page
    assert "Approve 2" in page
    assert "Deny 2" in page
    assert all(fresh(call).state == CallState.PENDING for call in calls)


def test_it_asks_once_more_when_many_hold_high_risk(operator: Client) -> None:
    calls = [waiting_call(), waiting_call(risk="high")]
    chosen = {"item": [item(call) for call in calls], "action": "approve"}
    assert "1 of them is of high risk" in text_of(operator.post("/approvals/bulk/", chosen))
    assert all(fresh(call).state == CallState.PENDING for call in calls)
    assert "2 approved" in text_of(operator.post("/approvals/bulk/", {**chosen, "confirm": "yes"}))


@pytest.mark.parametrize("bad", ["", "x", "1:2:3", "call-1:1:0"])
def test_it_refuses_selections_that_it_cannot_read(operator: Client, bad: str) -> None:
    assert operator.post("/approvals/bulk/", {"item": [bad], "action": "approve"}).status_code == 400


# --- beside ------------------------------------------------------------------------------------------


def test_it_shows_others_who_is_at_a_call(operator: Client, other: Client, call: ToolCall) -> None:
    operator.post(f"/approvals/{call.wire_id}/claim/", shown(call))
    assert "olga is looking at this" in text_of(other.get("/approvals/"))
    assert "olga is looking at this" not in text_of(operator.get("/approvals/"))
    assert "Let go" in text_of(operator.get("/approvals/?view=mine"))
    assert other.post(f"/approvals/{call.wire_id}/claim/", shown(call)).status_code == 409
    operator.post(f"/approvals/{call.wire_id}/release/", shown(call))
    assert "is looking at this" not in text_of(other.get("/approvals/"))


def test_it_keeps_comments_and_decisions_in_one_history(operator: Client, viewer: Client, call: ToolCall) -> None:
    viewer.post(f"/approvals/{call.wire_id}/comment/", {"text": "I know this customer."})
    decide(operator, call, "deny", {"reason": "no"})
    page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert "I know this customer." in page
    assert page.index("commented") < page.index("<b>olga</b> denied")


def test_it_gives_more_time(operator: Client) -> None:
    from django.utils import timezone

    call = waiting_call(expires_at=timezone.now())
    operator.post(f"/approvals/{call.wire_id}/extend/", shown(call, minutes="15"))
    later = fresh(call).expires_at
    assert later is not None
    assert call.expires_at is not None
    assert later > call.expires_at
    assert operator.post(f"/approvals/{call.wire_id}/extend/", shown(call, minutes="x")).status_code == 422


def test_it_frees_an_agent(operator: Client, call: ToolCall) -> None:
    path = f"/agents/{call.agent.wire_id}/?conversation={call.conversation.wire_id}"
    assert "Deny all and free it" in text_of(operator.get(path))
    response: Any = operator.post(f"/conversations/{call.conversation.wire_id}/unstick/", {"reason": "stale"})
    assert response.status_code == 302
    assert fresh(call).outcome == Outcome.DENIED
