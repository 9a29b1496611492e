"""The routes that cancel, and what deleting a run or a conversation does to what is open."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from agents.models import Agent, CallState, Conversation, Message, MessageRole, Run, RunStatus, Step, ToolCall
from tests.agents import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make.make_agent()


def post(path: str, body: Any = None) -> Any:
    return APIClient().post(f"/v1/{path}", body or {}, format="json")


def waiting(conversation: Conversation) -> Run:
    """A run that ended with a call that waits for a person."""
    run = make.make_run(conversation, stop_reason="requires_approval")
    make.make_message(conversation, "refund me", run=run)
    make.make_call(make.make_answer(run, [make.call_part("c1", gated=True)]), "c1")
    return run


def active(conversation: Conversation) -> Run:
    return make.make_run(conversation, RunStatus.RUNNING)


def test_it_cancels_all_that_is_open_of_an_agent(agent: Agent) -> None:
    running, asking = active(make.default_of(agent)), waiting(make.make_conversation(agent))
    foreign = active(make.default_of(make.make_agent("other")))
    make.make_run(make.default_of(agent))
    answer = post(f"agents/{agent.wire_id}/messages/cancel")
    assert answer.status_code == 200, answer.content
    assert answer.json() == {running.wire_id: "cancelled", asking.wire_id: "cancelled"}
    assert set(Run.objects.filter(status=RunStatus.CANCELLED)) == {running, asking}
    foreign.refresh_from_db()
    assert foreign.status == RunStatus.RUNNING
    assert post(f"agents/{agent.wire_id}/messages/cancel/").json() == {}


def test_it_cancels_the_runs_that_are_named(agent: Agent) -> None:
    first, second = active(make.default_of(agent)), active(make.make_conversation(agent))
    done = make.make_run(make.default_of(agent))
    body = {"run_ids": [second.wire_id, done.wire_id]}
    assert post(f"agents/{agent.wire_id}/messages/cancel", body).json() == {second.wire_id: "cancelled"}
    first.refresh_from_db()
    done.refresh_from_db()
    assert (first.status, done.status) == (RunStatus.RUNNING, RunStatus.COMPLETED)


@pytest.mark.parametrize("by", ["conversation", "run_ids", "agent"])
def test_it_closes_a_call_that_waits_in_its_own_conversation(agent: Agent, by: str) -> None:
    side = make.make_conversation(agent)
    run = waiting(side)
    path, body = {
        "conversation": (f"conversations/{side.wire_id}/cancel", {}),
        "run_ids": (f"agents/{agent.wire_id}/messages/cancel", {"run_ids": [run.wire_id]}),
        "agent": (f"agents/{agent.wire_id}/messages/cancel", {}),
    }[by]
    assert post(path, body).json() == {run.wire_id: "cancelled"}
    call = ToolCall.objects.get()
    assert (call.state, call.result_ok, call.returned) == (CallState.DONE, False, True)
    result = Message.objects.get(role=MessageRole.TOOL)
    assert result.conversation_id == side.pk
    assert [part["id"] for part in result.parts] == ["c1"]


def test_it_cancels_the_default_conversation_by_its_agent(agent: Agent) -> None:
    run = active(make.default_of(agent))
    path = f"conversations/default/cancel?agent_id={agent.wire_id}"
    assert post(path).json() == {run.wire_id: "cancelled"}
    assert post(path).json() == {}
    assert post("conversations/default/cancel").status_code == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"run_ids": ["nonsense"]}, 422),
        ({"run_ids": [f"run-{uuid4()}"]}, 404),
        ({"run_ids": "x"}, 422),
        ({"run_ids": [None]}, 422),
        ({"run_ids": None}, 200),
        ({"run_ids": []}, 200),
        ([1], 422),
    ],
)
def test_it_checks_what_to_cancel(agent: Agent, body: Any, status: int) -> None:
    assert post(f"agents/{agent.wire_id}/messages/cancel", body).status_code == status
    assert post("agents/nonsense/messages/cancel", body).status_code == 422
    assert post(f"agents/agent-{uuid4()}/messages/cancel", body).status_code == 404


def test_it_does_not_cancel_a_run_of_another_agent(agent: Agent) -> None:
    foreign = active(make.default_of(make.make_agent("other")))
    assert post(f"agents/{agent.wire_id}/messages/cancel", {"run_ids": [foreign.wire_id]}).status_code == 404


def test_it_cancels_one_run(agent: Agent) -> None:
    run = active(make.default_of(agent))
    answer = post(f"runs/{run.wire_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert post(f"runs/{run.wire_id}/cancel").json()["status"] == "cancelled"


def test_it_deletes_a_conversation_with_all_that_is_in_it(agent: Agent) -> None:
    doomed, kept = make.make_conversation(agent), make.make_conversation(agent)
    waiting(doomed)
    make.make_messages(doomed, 450)
    make.make_message(kept, "stays")
    answer = APIClient().delete(f"/v1/conversations/{doomed.wire_id}")
    assert (answer.status_code, answer.content) == (200, b"null")
    assert set(Conversation.objects.filter(is_default=False)) == {kept}
    assert [row.search_text for row in Message.objects.all()] == ["stays"]
    assert not Run.objects.exists()
    assert not ToolCall.objects.exists()


def test_it_deletes_a_run_and_keeps_its_messages(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    make.make_answer(run, [{"type": "text", "text": "Hello"}])
    answer = APIClient().delete(f"/v1/runs/{run.wire_id}")
    assert (answer.status_code, answer.json()["id"]) == (200, run.wire_id)
    assert not Step.objects.exists()
    shown = APIClient().get(f"/v1/agents/{agent.wire_id}/messages").json()
    assert [(message["content"], message["run_id"], message["step_id"]) for message in shown] == [("Hello", None, None)]


def test_it_closes_what_waits_before_it_deletes_its_run(agent: Agent) -> None:
    run = waiting(make.default_of(agent))
    assert APIClient().delete(f"/v1/runs/{run.wire_id}").status_code == 200
    assert Message.objects.filter(role=MessageRole.TOOL).count() == 1


def test_it_leaves_other_work_alone_when_it_deletes_a_run(agent: Agent) -> None:
    old = make.make_run(make.default_of(agent))
    running = active(make.default_of(agent))
    assert APIClient().delete(f"/v1/runs/{old.wire_id}").status_code == 200
    running.refresh_from_db()
    assert running.status == RunStatus.RUNNING
