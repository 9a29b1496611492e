"""Pause, resume, retry, delete; lists, cursors, callbacks, prices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from standardwebhooks import Webhook

from agents.models import OutboxItem, Run
from agents.outbox.delivery import Delivered, deliver_due
from agents.outbox.signing import webhook_secret
from batches.models import BatchItem, BatchJob, BatchMember
from tests import rest
from tests.agents.receivers import receiver
from tests.batches.desk import Desk, roles, weather
from tests.rest import UNKNOWN
from tests.scripted.answers import text

# --- pause, resume, retry --------------------------------------------------------------------------


def test_a_lack_of_credit_pauses_the_job_and_fails_nobody(desk: Desk) -> None:
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.round(default="no_credit")
    detail = desk.detail(job)
    assert (detail["paused"], detail["pause_kind"], detail["counts"]) == (True, "billing", {"ready": 3})
    assert {item["request_status"] for item in desk.items(job)} == {"created"}
    desk.poll()
    assert len(desk.submits) == 1
    desk.more(job, "/resume", method="POST")
    desk.poll()
    desk.answers(text("Paid."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert {tuple(roles(desk.messages(job), agent)) for agent in agents} == {("assistant", "user")}
    assert BatchItem.objects.count() == 3
    assert desk.provider.refused == []


def test_an_operator_pauses_and_resumes(desk: Desk) -> None:
    job = desk.submitted(desk.agent(desk.tool()))
    desk.more(job, "/pause", method="POST")
    desk.answers(*weather(heartbeat=True), times=1)
    desk.round()
    assert desk.detail(job)["counts"] == {"ready": 1}
    assert len(desk.submits) == 1
    assert desk.more(job, "/resume", method="POST")["paused"] is False
    desk.poll()
    assert len(desk.submits) == 2
    desk.answers(text("Done."))
    desk.round()
    desk.more(job, "/pause", method="POST", expect=409)


def test_passing_failures_go_again_when_asked_to(desk: Desk) -> None:
    agents = desk.plain(4)
    job = desk.submitted(*agents, retry={"max": 1})
    desk.answers(text("Yes."))
    outcome = {agents[0]: "expired", agents[1]: "overloaded", agents[2]: "bad_request", agents[3]: "succeeded"}
    desk.round(outcome)
    assert desk.detail(job)["counts"] == {"in_flight": 2, "failed": 1, "done": 1}
    wave = desk.waves(job)[-1]
    assert {item["agent_id"] for item in desk.items(job, llm_batch_id=wave["id"])} == set(agents[:2])
    assert {item["step_state"]["step_number"] for item in desk.items(job)} == {0}
    desk.round({agents[0]: "expired"})
    assert desk.detail(job)["counts"] == {"done": 2, "failed": 1, "expired": 1}
    assert [len(roles(desk.messages(job), agent)) for agent in agents] == [1, 2, 1, 2]
    assert desk.provider.refused == []


def test_what_failed_is_asked_again_by_hand(desk: Desk) -> None:
    agents = desk.plain(2)
    job = desk.submitted(*agents, text="Please")
    desk.answers(text("Yes."))
    desk.round({agents[0]: "server"})
    assert desk.job(job)["status"] == "completed"
    assert desk.more(job, "/retry", method="POST") == {"retried": 1}
    assert desk.job(job)["status"] == "running"
    desk.poll()
    (request,) = desk.submits[-1].body["requests"]
    assert str(request["params"]["messages"]).count("Please") == 1
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 2}
    assert desk.more(job, "/retry", method="POST") == {"retried": 0}


# --- lists -----------------------------------------------------------------------------------------


def test_jobs_are_listed_in_every_state_and_by_cursor(desk: Desk) -> None:
    agents = desk.plain(3)
    desk.answers(text("Yes."))
    jobs = []
    for agent in agents:
        jobs.append(desk.submitted(agent))
        if len(jobs) < 3:
            desk.round()
    for path in ("messages/batches", "jobs/"):
        listed = rest.get(path)
        assert [job["id"] for job in listed] == jobs[::-1]
        assert [job["status"] for job in listed] == ["running", "completed", "completed"]
        assert [job["id"] for job in rest.get(path, after=jobs[2], limit=1)] == [jobs[1]]
        assert [job["id"] for job in rest.get(path, before=jobs[0], limit=5)] == [jobs[2], jobs[1]]
        assert [job["id"] for job in rest.get(path, order="asc")] == jobs
        rest.get(path, limit="x", expect=422)
    assert [job["id"] for job in rest.get("jobs/active")] == jobs[2:]
    assert [job["id"] for job in rest.get("jobs/", active="true")] == jobs[2:]
    assert rest.get("jobs/", source_id="source-1") == []
    one = rest.get(f"jobs/{jobs[0]}")
    assert one == rest.get(f"messages/batches/{jobs[0]}")
    assert (one["job_type"], one["callback_url"], one["background"]) == ("batch", None, False)
    rest.get(f"jobs/job-{UNKNOWN}", expect=404)
    rest.get("jobs/job-1", expect=422)


def test_messages_are_paged_both_ways_without_overlap(desk: Desk) -> None:
    agents = desk.plain(4)
    job = desk.submitted(*agents)
    desk.answers(text("Yes."))
    desk.round()
    whole = [message["id"] for message in desk.messages(job)]
    assert len(whole) == 8
    pages: list[str] = []
    cursor: dict[str, str] = {}
    while page := desk.messages(job, limit=3, **cursor):
        pages += [message["id"] for message in page]
        cursor = {"after": page[-1]["id"]}
    assert pages == whole
    assert [m["id"] for m in desk.messages(job, before=whole[3])] == whole[:3]
    assert [m["id"] for m in desk.messages(job, order="asc")] == whole[::-1]
    assert {m["agent_id"] for m in desk.messages(job, agent_id=agents[0])} == {agents[0]}
    first = desk.messages(job)[-1]
    assert first["batch_item_id"] in {item["id"] for item in desk.items(job)}


def test_a_deleted_job_is_gone_and_its_work_ends(desk: Desk) -> None:
    agents = desk.plain(2)
    done = desk.submitted(agents[0])
    desk.answers(text("Yes."))
    desk.round()
    rest.delete(f"jobs/{done}")
    rest.get(f"jobs/{done}", expect=404)
    runs = desk.submitted(agents[1])
    assert rest.delete(f"jobs/{runs}")["id"] == runs
    rest.get(f"messages/batches/{runs}", expect=404)
    assert rest.get("jobs/") == []
    desk.poll()
    desk.round(default="canceled")
    assert not BatchJob.objects.exists()
    assert not BatchMember.objects.exists()
    assert not Run.objects.filter(status__in=["created", "running"]).exists()


# --- callbacks and money ---------------------------------------------------------------------------


def test_a_callback_is_stored_with_the_end(desk: Desk) -> None:
    agents = desk.plain(2)
    silent, told = desk.submitted(agents[0]), desk.submitted(agents[1], callback_url="https://example.com/hook")
    desk.answers(text("Yes."))
    for number in (0, 1):
        desk.end(number=number)
    desk.poll()
    (item,) = OutboxItem.objects.all()
    payload = json.loads(item.payload)
    assert (item.url, payload["job_id"], payload["status"]) == ("https://example.com/hook", told, "completed")
    assert payload["counts"] == {"done": 1}
    assert desk.job(silent)["callback_url"] is None
    shown = desk.job(told)
    assert (shown["callback_url"], shown["callback_sent_at"]) == ("https://example.com/hook", None)
    OutboxItem.objects.update(delivered_at=shown["completed_at"], status_code=204)
    assert desk.job(told)["callback_status_code"] == 204


@pytest.mark.parametrize(("end", "status"), [("bad_request", "failed"), ("expired", "expired")])
def test_a_callback_tells_of_every_end_signed(desk: Desk, settings: Any, end: str, status: str) -> None:
    settings.LETTAWEB_WEBHOOK_PRIVATE = True
    with receiver() as hook:
        job = desk.submitted(*desk.plain(), callback_url=hook.url)
        desk.round(default=end)
        assert deliver_due(seconds=10, linger=0) == Delivered(sent=1)
        ((_, headers, body),) = hook.came
    told = Webhook(webhook_secret()).verify(body, headers)
    assert (told["job_id"], told["status"], told["counts"]) == (job, status, {status: 1})
    shown = desk.job(job)
    assert (shown["callback_status_code"], bool(shown["callback_sent_at"])) == (200, True)


def test_costs_are_the_settings_prices_and_never_invented(desk: Desk, settings: Any) -> None:
    priced, free = desk.plain(1)[0], desk.agent(agent_type="letta_v1_agent", model="anthropic/claude-3-opus-20240229")
    settings.LETTAWEB_PRICES = {"anthropic/claude-3-5-sonnet*": {"input": 3.0, "output": 15.0, "cached": 0.3}}
    job = desk.submitted(priced, free)
    desk.answers(text("Yes."), usage={"input_tokens": 1000, "output_tokens": 200})
    desk.round()
    by_agent = {item["agent_id"]: item["cost"] for item in desk.items(job)}
    assert by_agent[priced] == {"amount": 0.003, "unpriced": 0}  # half of the price of a live call
    assert by_agent[free] == {"amount": None, "unpriced": 1}
    assert desk.detail(job)["cost"] == {"amount": 0.003, "unpriced": 1}
    assert desk.detail(job)["usage"]["prompt_tokens"] == 2000
