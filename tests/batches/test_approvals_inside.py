"""People decide inside a batch: a gated call parks its member, nobody else waits, a decision goes on later."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.actions.requests import Approval, MessageRequest, Verdict
from agents.actions.send import send
from agents.models import Run, ToolCall
from agents.policies.rows import default_conversation
from batches.models import PollerLease
from tests.batches.desk import Desk, api, roles
from tests.scripted.answers import text, tool_use

CASES = Path(__file__).resolve().parents[1] / "cases" / "batch"
FREE = '''
def free_tool(x: int) -> str:
    """
    Free.

    Args:
        x (int): A number.
    """
    return f"free {x}"
'''
GATED = '''
def gated_tool(n: int) -> str:
    """
    Gated.

    Args:
        n (int): A number.
    """
    return f"gated {n}"
'''


def decide(desk: Desk, agent: str, *call_ids: str, approve: bool = True) -> Run:
    verdicts = tuple(
        Verdict(call, "approve" if approve else "deny", {"type": "approval", "tool_call_id": call, "approve": approve})
        for call in call_ids
    )
    request = MessageRequest((), Approval(verdicts), {})
    return send(default_conversation(desk.row(agent)), request, actor=User.objects.get(username="api")).run


@pytest.fixture
def parked(desk: Desk) -> tuple[str, str, str]:
    """(job, the agent that waits, the agent that is done)."""
    tools = [desk.tool(FREE), desk.tool(GATED, default_requires_approval=True)]
    waits = desk.agent(*tools, agent_type="letta_v1_agent", parallel_tool_calls=True)
    done = desk.plain()[0]
    job = desk.submitted(waits, done)
    desk.round(raw=(CASES / "anthropic_tool_use.jsonl").read_bytes())
    return job, waits, done


def test_a_gated_call_parks_its_member_and_nobody_else(desk: Desk, parked: tuple[str, str, str]) -> None:
    job, waits, _ = parked
    detail = desk.detail(job)
    assert (detail["counts"], detail["phase"], detail["status"]) == (
        {"parked": 1, "done": 1},
        "awaiting_approval",
        "running",
    )
    (call,) = desk.more(job, "/approvals")
    assert call["tool_call_id"] == "toolu_2"
    assert not Run.objects.filter(status__in=["created", "running"]).exists()  # a parked member holds no lock
    assert desk.state(waits)["pending_approval"]["tool_calls"][0]["tool_call_id"] == "toolu_2"
    desk.poll(2)
    assert desk.detail(job)["counts"] == {"parked": 1, "done": 1}


def test_an_approval_goes_on_in_a_later_wave(desk: Desk, parked: tuple[str, str, str]) -> None:
    job, waits, _ = parked
    PollerLease.objects.update(wanted=False)
    run = decide(desk, waits, "toolu_2")
    assert (run.driver, run.status) == ("batch", "created")
    assert PollerLease.objects.get().wanted  # a poll is asked for at once
    desk.poll()
    detail = desk.detail(job)
    assert detail["counts"] == {"in_flight": 1, "done": 1}
    sent = desk.submits[-1].body["requests"][0]["params"]["messages"]
    assert "free 1" in str(sent[-1])
    assert "gated 2" in str(sent[-1])
    desk.answers(text("Both done."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert roles(desk.messages(job), waits) == ["assistant", "tool", "approval", "approval", "user"]
    assert [call.outcome for call in ToolCall.objects.order_by("id")] == ["ran", "ran"]
    assert desk.provider.refused == []


def test_a_denial_goes_on_and_the_tool_does_not_run(desk: Desk, parked: tuple[str, str, str]) -> None:
    job, waits, _ = parked
    decide(desk, waits, "toolu_2", approve=False)
    desk.poll()
    assert "denied" in str(desk.submits[-1].body["requests"][0]["params"]["messages"][-1])
    desk.answers(text("As you wish."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert [call.outcome for call in ToolCall.objects.order_by("id")] == ["ran", "denied"]


@pytest.mark.parametrize(
    ("decided", "told", "outcome"),
    [
        ({"decision": "approve"}, "gated 2", "ran"),
        ({"decision": "approve", "arguments": {"n": 5}}, "gated 5", "ran"),
        ({"decision": "deny", "reason": "Not today."}, "Not today.", "denied"),
        ({"decision": "answer", "result": "I did it myself"}, "I did it myself", "answered"),
    ],
    ids=["approved", "edited", "denied", "answered"],
)
def test_what_is_decided_at_the_desk_goes_on(
    desk: Desk, parked: tuple[str, str, str], decided: dict[str, Any], told: str, outcome: str
) -> None:
    job, waits, _ = parked
    (call,) = desk.more(job, "/approvals")
    shown = {"version": call["version"], "digest": call["digest"]}
    api("POST", f"approvals/{call['id']}/decide", body={**shown, **decided})
    desk.poll()
    sent = str(desk.submits[-1].body["requests"][0]["params"]["messages"][-1])
    assert ("free 1" in sent, told in sent) == (True, True)
    assert ("changed the arguments" in sent) == ("arguments" in decided)
    desk.answers(text("I see."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert [row.outcome for row in ToolCall.objects.order_by("id")] == ["ran", outcome]
    assert roles(desk.messages(job), waits)[0] == "assistant"
    assert desk.provider.refused == []


def test_a_second_call_parks_its_member_again(desk: Desk, parked: tuple[str, str, str]) -> None:
    job, waits, _ = parked
    decide(desk, waits, "toolu_2")
    desk.answers(tool_use("gated_tool", {"n": 3}, "toolu_3"), times=1)
    desk.answers(text("All done."))
    desk.poll()
    desk.round()
    assert desk.detail(job)["counts"] == {"parked": 1, "done": 1}
    decide(desk, waits, "toolu_3")
    desk.poll()
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert [call.result_text for call in ToolCall.objects.order_by("id")] == ["free 1", "gated 2", "gated 3"]
    assert [item["step_state"]["step_number"] for item in desk.items(job, agent_id=waits)] == [0, 1, 2]


def test_a_member_goes_on_when_its_whole_set_is_decided(desk: Desk) -> None:
    gated = desk.tool(GATED, default_requires_approval=True)
    job = desk.submitted(desk.agent(gated, agent_type="letta_v1_agent", parallel_tool_calls=True))
    desk.answers(*(tool_use("gated_tool", {"n": n}, f"call_{n}") for n in (1, 2)), times=1)
    desk.round()
    for left, call in enumerate(reversed(desk.more(job, "/approvals"))):
        assert desk.detail(job)["counts"] == {"parked": 1}, left
        body = {"decision": "approve", "version": call["version"], "digest": call["digest"]}
        api("POST", f"approvals/{call['id']}/decide", body=body)
        desk.poll()
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    assert [call.result_text for call in ToolCall.objects.order_by("id")] == ["gated 1", "gated 2"]


def test_the_same_decision_again_finds_the_same_run(desk: Desk, parked: tuple[str, str, str]) -> None:
    _, waits, _ = parked
    again = decide(desk, waits, "toolu_2")
    assert decide(desk, waits, "toolu_2").pk == again.pk
    assert Run.objects.filter(driver="batch", status="created").count() == 1


def test_what_waits_for_people_can_be_cancelled_elsewhere(desk: Desk, parked: tuple[str, str, str]) -> None:
    from tests import rest

    job, waits, _ = parked
    rest.post(f"agents/{waits}/messages/cancel", {})
    desk.poll()
    detail = desk.detail(job)
    assert (detail["counts"], detail["status"]) == ({"cancelled": 1, "done": 1}, "completed")


def test_a_deleted_agent_waits_for_nobody(desk: Desk, parked: tuple[str, str, str]) -> None:
    from tests import rest

    job, waits, _ = parked
    rest.delete(f"agents/{waits}")
    desk.poll()
    assert desk.detail(job)["counts"] == {"failed": 1, "done": 1}


def test_a_decided_call_of_a_batch_that_is_gone_goes_on_live(desk: Desk, parked: tuple[str, str, str]) -> None:
    from batches.models import BatchJob

    _, waits, _ = parked
    BatchJob.objects.all().delete()
    run = decide(desk, waits, "toolu_2")
    desk.poll()
    run.refresh_from_db()
    assert (run.driver, run.status) == ("live", "created")


@pytest.mark.parametrize("why", ["enough are ready", "one waited for a minute"])
def test_decided_members_wait_a_little_for_others_in_flight(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    gated = desk.tool(GATED, default_requires_approval=True)
    first, second = (desk.agent(gated, agent_type="letta_v1_agent") for _ in range(2))
    job = desk.submitted(first)
    desk.answers(tool_use("gated_tool", {"n": 1}, "call_a"), times=1)
    desk.round()
    from batches.models import BatchJob, BatchMember

    # a second wave of the same job is under way
    row = BatchJob.objects.get()
    BatchMember.objects.create(
        job=row, position=1, agent=desk.row(second), agent_uuid=desk.row(second).uuid, since=row.created_at,
        request={"inputs": [{"role": "user", "parts": [{"type": "text", "text": "hi"}], "fields": {}}], "options": {}},
    )  # fmt: skip
    desk.poll()
    assert desk.detail(job)["counts"] == {"parked": 1, "in_flight": 1}
    decide(desk, first, "call_a")
    desk.poll()
    assert desk.detail(job)["counts"] == {"ready": 1, "in_flight": 1}
    if why == "enough are ready":
        monkeypatch.setattr("batches.poll.depart.ENOUGH", 1)
    else:
        BatchMember.objects.filter(state="ready").update(since=timezone.now() - timedelta(seconds=61))
    desk.poll()
    assert desk.detail(job)["counts"] == {"in_flight": 2}


def test_the_sets_of_several_agents_do_not_meet(desk: Desk) -> None:
    gated = desk.tool(GATED, default_requires_approval=True)
    agents = [desk.agent(gated, agent_type="letta_v1_agent") for _ in range(3)]
    job = desk.submitted(*agents)
    desk.answers(tool_use("gated_tool", {"n": 7}, "tu_same"), times=3)
    desk.round()
    assert desk.detail(job)["counts"] == {"parked": 3}
    decide(desk, agents[1], "tu_same")
    desk.poll()
    assert desk.detail(job)["counts"] == {"parked": 2, "in_flight": 1}
    decide(desk, agents[0], "tu_same", approve=False)
    decide(desk, agents[2], "tu_same")
    desk.answers(text("Done."))
    desk.poll()
    desk.round()
    desk.poll()
    for number in range(len(desk.provider.batches)):
        if desk.provider.batches[number].status != "ended":
            desk.end(number=number)
    desk.poll()
    counts: dict[str, Any] = desk.detail(job)["counts"]
    assert counts == {"done": 3}
