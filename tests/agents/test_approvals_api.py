"""The REST API of the desk: who may do what, the queue's order and pages, decisions over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from agents.actions.cancel import cancel_conversation
from agents.models import CallState, Decision, Driver, Run, ToolCall
from tests.agents import factories as make
from tests.agents.desk import Caller, due, fresh, person, refund_tool, runs_after, waiting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _with_tokens(settings: Any) -> None:
    settings.LETTAWEB_AUTH = "token"
    settings.ALLOWED_HOSTS = ["*"]


@pytest.fixture
def anna() -> Caller:
    return Caller(person("anna"))


@pytest.fixture
def ben() -> Caller:
    return Caller(person("ben"))


def seen(call: ToolCall, **more: Any) -> dict[str, Any]:
    return {"version": call.version, "digest": call.digest, **more}


def listed(caller: Caller, query: str = "") -> list[str]:
    return [row["tool_call_id"] for row in caller.get(query)["items"]]


@pytest.mark.parametrize("role", ["viewer", "builder"])
def test_it_lets_only_those_decide_who_may(role: str) -> None:
    vera = Caller(person("vera", role))
    call = waiting()[0]
    assert len(vera.get()["items"]) == 1
    assert vera.get(call.wire_id)["id"] == call.wire_id
    bodies: dict[str, Any] = {
        f"{call.wire_id}/decide": seen(call, decision="approve"),
        "bulk": {"items": [seen(call, id=call.wire_id)], "decision": "approve"},
        f"{call.wire_id}/claim": {},
        f"{call.wire_id}/comment": {"text": "x"},
        f"{call.wire_id}/extend": {"minutes": 5},
        f"{call.wire_id}/undo": {"version": 1},
        f"{call.wire_id}/reveal": {},
        "unstick": {"conversation_id": call.conversation.wire_id},
    }
    for path, body in bodies.items():
        vera.post(path, body, expect=403)
    assert fresh(call).version == 1
    assert not Decision.objects.exists()


def test_it_never_decides_by_get(anna: Caller) -> None:
    call = waiting()[0]
    for path in ("decide", "claim", "comment", "extend", "undo", "reveal"):
        anna.get(f"{call.wire_id}/{path}", expect=405)
    anna.get("bulk", expect=405)
    assert fresh(call).waiting


def test_it_decides_and_answers_the_same_again(anna: Caller, ben: Caller) -> None:
    call = waiting()[0]
    body = seen(call, decision="deny", reason="too much")
    first = anna.post(f"{call.wire_id}/decide", body)
    assert (first["state"], first["outcome"], first["decided_by"], first["repeated"]) == (
        "done",
        "denied",
        "anna",
        False,
    )
    assert first["continues_in"] == runs_after(call)[0].wire_id
    again = anna.post(f"{call.wire_id}/decide", body)
    assert {**again, "repeated": False} == first
    lost = ben.post(f"{call.wire_id}/decide", seen(call, decision="approve"), expect=409)["detail"]
    assert (lost["code"], lost["decided_by"], lost["decision"]) == ("ALREADY_DECIDED", "anna", "deny")
    assert lost["decided_at"].startswith("20")
    assert Decision.objects.get().via == "rest"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"decision": "approve"}, 422),
        ({"version": 1, "digest": "x"}, 422),
        ({"decision": None, "version": 1, "digest": "x"}, 422),
        ({"decision": "yes", "version": 1, "digest": "x"}, 422),
        ({"decision": True, "version": 1, "digest": "x"}, 422),
        ({"decision": "answer", "version": 1, "digest": "REAL"}, 422),
        ({"decision": "approve", "version": 1, "digest": "x"}, 409),
        ({"decision": "approve", "version": 2, "digest": "REAL"}, 409),
        ({"decision": "approve", "version": 1, "digest": "REAL", "arguments": [1]}, 422),
        ({"decision": "approve", "version": 1, "digest": "REAL", "arguments": {"order": "7"}}, 422),
        ({"decision": "approve", "version": 1, "digest": "REAL", "arguments": {"order": 2**60}}, 200),
        ({"decision": "approve", "version": 1, "digest": "REAL", "arguments": '{"order": 1.5}'}, 422),
        ({"decision": "answer", "version": 1, "digest": "REAL", "result": ""}, 200),
    ],
)
def test_it_checks_decisions(anna: Caller, body: dict[str, Any], status: int) -> None:
    call = waiting()[0]
    digest = call.digest if body.get("digest") == "REAL" else "x"
    anna.post(f"{call.wire_id}/decide", {**body, **({"digest": digest} if "digest" in body else {})}, expect=status)
    assert fresh(call).waiting == (status != 200)
    if status == 200 and "arguments" in body:
        assert fresh(call).edited_arguments == '{"order": 1152921504606846976}'


def test_it_orders_by_time_left_then_risk_then_age(anna: Caller) -> None:
    low, high_late, medium, soon, high, overdue = (
        waiting(risk="low")[0],
        waiting(risk="high", **due(120))[0],
        waiting()[0],
        waiting(risk="low", **due(6))[0],
        waiting(risk="high")[0],
        waiting(risk="low", **due(-3))[0],
    )
    wanted = [call.call_id for call in (overdue, soon, high_late, high, medium, low)]
    assert listed(anna) == wanted
    collected, after = [], ""
    while after is not None:
        page = anna.get(f"?limit=2&after={after}")
        collected += [row["tool_call_id"] for row in page["items"]]
        after = page["next"]
    assert collected == wanted


def test_it_goes_on_where_a_page_ended_though_its_last_call_was_decided(anna: Caller) -> None:
    calls = [waiting()[0] for _ in range(4)]
    page = anna.get("?limit=2")
    last = calls[1]
    anna.post(f"{last.wire_id}/decide", seen(last, decision="approve"))
    assert listed(anna, f"?limit=2&after={page['next']}") == [call.call_id for call in calls[2:]]


def test_it_filters_the_queue(anna: Caller) -> None:
    agent = make.make_agent("other")
    here, risky, urgent, unknown, batched = (
        waiting(conversation=make.default_of(agent))[0], waiting(risk="high")[0], waiting(**due(2))[0],
        waiting(state=CallState.UNKNOWN)[0], waiting()[0],
    )  # fmt: skip
    tool = refund_tool()
    Run.objects.filter(pk=batched.turn_id).update(driver=Driver.BATCH, metadata={"batch_id": "batch-1"})
    anna.post(f"{risky.wire_id}/claim")
    wanted = {
        f"?agent_id={agent.wire_id}": [here], "?risk=high": [risky], "?expiring=true": [urgent], "?mine=true": [risky],
        "?state=unknown": [unknown], "?batch=true": [batched], "?batch=batch-1": [batched], "?batch=batch-2": [],
        "?tool=refund&risk=high": [risky], "?tool=other": [], f"?tool={tool.wire_id}&risk=high": [risky],
        "?state=decided": [],
    }  # fmt: skip
    assert {query: listed(anna, query) for query in wanted} == {
        query: [call.call_id for call in calls] for query, calls in wanted.items()
    }
    assert anna.get("counts") == {"waiting": 5, "pending": 4, "unknown": 1, "mine": 1, "expiring": 1, "high": 1}
    for query in ("?state=nonsense", "?risk=extreme", "?limit=0", "?limit=501", "?mine=perhaps", "?agent_id=x"):
        anna.get(query, expect=422)


def test_it_shows_the_history_latest_first(anna: Caller, ben: Caller) -> None:
    first, second = waiting()[0], waiting()[0]
    anna.post(f"{second.wire_id}/decide", seen(second, decision="approve"))
    ben.post(f"{first.wire_id}/decide", seen(first, decision="deny"))
    assert listed(anna, "?state=decided") == [first.call_id, second.call_id]
    assert listed(anna, "?state=decided&mine=true") == [second.call_id]
    page = anna.get("?state=decided&limit=1")
    assert listed(anna, f"?state=decided&after={page['next']}") == [second.call_id]


def test_it_shows_in_the_history_what_was_closed_without_a_verdict(anna: Caller) -> None:
    stuck, cancelled = waiting()[0], waiting()[0]
    anna.post("unstick", {"conversation_id": stuck.conversation.wire_id, "reason": "old"})
    cancel_conversation(cancelled.conversation, anna.user)
    rows = anna.get("?state=decided")["items"]
    assert [(row["tool_call_id"], row["outcome"], row["decided_by"]) for row in rows] == [
        (cancelled.call_id, "cancelled", "anna"), (stuck.call_id, "denied", "anna"),
    ]  # fmt: skip


def test_it_shows_a_call_with_all_that_a_person_needs(anna: Caller) -> None:
    call, sibling = waiting({"order": 7, "password": "hunter2"}, {"order": 8})
    anna.post(f"{call.wire_id}/comment", {"text": "odd"})
    shown = anna.get(call.wire_id)
    fields = {field["name"]: field for field in shown["fields"]}
    assert list(fields) == ["order", "amount", "note", "password"]
    assert (fields["order"]["label"], fields["order"]["value"], fields["order"]["required"]) == ("Order", 7, True)
    assert (fields["amount"]["given"], fields["password"]["secret"]) == (False, True)
    assert "hunter2" not in str(shown)
    assert [one["tool_call_id"] for one in shown["set"]] == [call.call_id, sibling.call_id]
    assert shown["messages"][0]["message_type"] == "user_message"
    assert [comment["text"] for comment in shown["comments"]] == ["odd"]
    assert shown["sentence"].startswith("billing wants to refund: order 7")
    anna.post(f"{call.wire_id}/decide", seen(call, decision="approve", reason="fine"))
    history = anna.get(call.wire_id)["history"]
    assert [(entry["kind"], entry["by"], entry["via"], entry["reason"]) for entry in history] == [
        ("approve", "anna", "rest", "fine")
    ]


def test_it_decides_many_with_a_result_for_each(anna: Caller) -> None:
    calls = [waiting()[0] for _ in range(3)]
    anna.post(f"{calls[1].wire_id}/decide", seen(calls[1], decision="deny"))
    items = [seen(call, id=call.wire_id) for call in calls]
    answer = anna.post("bulk", {"items": items, "decision": "approve"})
    assert answer["summary"] == "2 approved, 1 already decided"
    assert [row["status"] for row in answer["results"]] == ["done", "already", "done"]
    assert answer["results"][1]["detail"]["decided_by"] == "anna"
    anna.post("bulk", {"items": [], "decision": "approve"}, expect=422)
    anna.post("bulk", {"items": items}, expect=422)


def test_it_does_the_rest_over_http(anna: Caller, ben: Caller) -> None:
    first, second = waiting({"order": 1}, {"order": 2}, **due(5))
    assert anna.post(f"{first.wire_id}/claim", {"seconds": 60})["held_by"] == "anna"
    assert ben.post(f"{first.wire_id}/claim", expect=409)["detail"]["held_by"] == "anna"
    assert anna.call("DELETE", f"{first.wire_id}/claim")["held_by"] is None
    assert anna.post(f"{first.wire_id}/extend", {"minutes": 60})["expires_at"] > first.expires_at.isoformat()  # type: ignore[union-attr]
    done = anna.post(f"{first.wire_id}/decide", seen(first, decision="approve"))
    assert done["continues_in"] is None
    undone = ben.post(f"{first.wire_id}/undo", {"version": done["version"]})
    assert (undone["state"], undone["version"]) == ("pending", 3)
    closed = anna.post("unstick", {"agent_id": first.agent.wire_id})["closed"]
    assert {row["id"] for row in closed} == {first.wire_id, second.wire_id}
    assert len(anna.get("presets")) >= 4
    for path in ("call-nonsense", f"call-{make.START:%Y}"):
        anna.get(path, expect=422)
    anna.get("call-00000000-0000-4000-8000-000000000000", expect=404)
