"""Cancel: nothing new is sent, no tool runs, and what was paid for is kept."""

from __future__ import annotations

from agents.models import Run, ToolCall
from tests import rest
from tests.batches.desk import Desk, roles, weather
from tests.scripted.answers import fault, text


def cancel(job: str) -> None:
    rest.call("PATCH", f"messages/batches/{job}/cancel", expect=204)


def test_cancel_keeps_what_was_paid_for_and_runs_no_tool(desk: Desk) -> None:
    agents = [*desk.plain(3), desk.agent(desk.tool())]
    job = desk.submitted(*agents)
    cancel(job)
    assert desk.detail(job)["phase"] == "cancelling"
    desk.poll()
    assert desk.provider.batches[0].status == "canceling"
    assert desk.job(job)["status"] == "running"  # until the provider says that it has ended
    desk.answers(*weather(heartbeat=True), marker="get_weather")
    desk.answers(text("I was done."))
    desk.round({agents[0]: "succeeded", agents[3]: "succeeded"}, default="canceled")
    assert desk.job(job)["status"] == "cancelled"
    assert desk.detail(job)["counts"] == {"done": 1, "cancelled": 3}
    assert [roles(desk.messages(job), agent) for agent in agents] == [
        ["assistant", "user"],
        ["user"],
        ["user"],
        ["tool", "assistant", "user"],
    ]
    assert [call.outcome for call in ToolCall.objects.all()] == ["cancelled"]
    assert not Run.objects.filter(status__in=["created", "running"]).exists()
    assert len(desk.submits) == 1
    cancel(job)  # twice is harmless
    assert desk.job(job)["status"] == "cancelled"


def test_cancel_before_anything_was_sent(desk: Desk) -> None:
    agent = desk.plain()[0]
    job = str(desk.create(agent)["id"])
    cancel(job)
    desk.poll()
    assert desk.job(job)["status"] == "cancelled"
    assert desk.submits == []
    assert desk.submitted(agent)  # its agent is free


def test_cancel_while_it_waits_to_be_sent(desk: Desk) -> None:
    desk.provider.script_route("POST /v1/messages/batches", fault("rate_limit", retry_after=100))
    job = desk.submitted(*desk.plain(2))
    cancel(job)
    desk.poll()
    assert desk.job(job)["status"] == "cancelled"
    assert {item["request_status"] for item in desk.items(job)} == {"cancelled"}
    assert not Run.objects.filter(status__in=["created", "running"]).exists()


def test_cancel_stops_live_runs_and_keeps_those_that_ended(desk: Desk) -> None:
    agents = desk.plain(3, model="demo/demo")
    job = desk.submitted(*agents)
    assert desk.detail(job)["counts"] == {"in_flight": 3}
    ended = Run.objects.order_by("id").first()
    assert ended is not None
    Run.objects.filter(pk=ended.pk).update(status="completed", stop_reason="end_turn", input_tokens=7)
    cancel(job)
    desk.poll()
    assert (desk.job(job)["status"], desk.detail(job)["counts"]) == ("cancelled", {"done": 1, "cancelled": 2})
    assert [run.status for run in Run.objects.order_by("id")] == ["completed", "cancelled", "cancelled"]
    assert desk.detail(job)["usage"]["prompt_tokens"] == 7
    assert {wave["status"] for wave in desk.waves(job)} == {"completed"}


def test_a_live_run_that_was_cancelled_elsewhere_ends_its_part(desk: Desk) -> None:
    agent, other = desk.plain(2, model="demo/demo")
    job = desk.submitted(agent, other)
    rest.post(f"agents/{agent}/messages/cancel", {})
    desk.poll()
    assert desk.detail(job)["counts"] == {"cancelled": 1, "in_flight": 1}
    assert [item["request_status"] for item in desk.items(job)] == ["cancelled", "created"]


def test_cancel_drops_what_is_ready(desk: Desk) -> None:
    job = desk.submitted(desk.agent(desk.tool()))
    desk.more(job, "/pause", method="POST")
    desk.answers(*weather(heartbeat=True))
    desk.round()
    assert desk.detail(job)["counts"] == {"ready": 1}
    cancel(job)
    desk.poll()
    assert (desk.job(job)["status"], len(desk.submits)) == ("cancelled", 1)
    assert [item["request_status"] for item in desk.items(job)] == ["completed", "cancelled"]
    assert not Run.objects.filter(status__in=["created", "running"]).exists()


def test_cancel_closes_parked_calls(desk: Desk) -> None:
    gated = desk.tool(default_requires_approval=True)
    agent = desk.agent(gated)
    job = desk.submitted(agent)
    desk.answers(*weather(heartbeat=True))
    desk.round()
    assert desk.detail(job)["counts"] == {"parked": 1}
    cancel(job)
    desk.poll()
    assert desk.job(job)["status"] == "cancelled"
    assert [call.outcome for call in ToolCall.objects.all()] == ["cancelled"]
    assert desk.state(agent)["pending_approval"] is None


def test_cancel_after_the_end_changes_nothing(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    desk.answers(text("Yes."))
    desk.round()
    cancel(job)
    assert desk.job(job)["status"] == "completed"
