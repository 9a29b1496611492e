"""Sending: the intent first, one request, and after an answer that got lost a search instead of a second batch."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from batches.models import BatchItem, LLMBatch
from batches.poll import spool
from tests.batches.desk import Desk
from tests.scripted.answers import dropped, fault, lost, text

CREATE = "POST /v1/messages/batches"


def test_a_lost_answer_leads_to_a_search_and_not_to_a_second_batch(desk: Desk) -> None:
    desk.provider.script_route(CREATE, lost())
    job = desk.submitted(*desk.plain(3))
    assert desk.waves(job)[0]["state"] == "unknown"
    assert len(desk.provider.batches) == 1
    desk.poll()
    wave = desk.waves(job)[0]
    assert (wave["state"], wave["provider_batch_id"]) == ("running", desk.provider.batches[0].id)
    desk.answers(text("Yes."))
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert len(desk.submits) == 1


def test_after_three_looks_in_vain_it_is_sent_again(desk: Desk) -> None:
    desk.provider.script_route(CREATE, dropped())
    job = desk.submitted(*desk.plain(2))
    for looks in (1, 2):
        desk.poll()
        assert desk.waves(job)[0]["state"] == "unknown"
        assert LLMBatch.objects.get().looks == looks
        assert len(desk.submits) == 1
    desk.poll()
    assert desk.waves(job)[0]["state"] == "running"
    assert (len(desk.submits), len(desk.provider.batches)) == (2, 1)


def test_another_batch_of_the_same_size_is_told_apart_by_its_results(desk: Desk) -> None:
    stranger = desk.submitted(*desk.plain(2))
    LLMBatch.objects.update(provider_batch_id="unknown-to-us", status="completed")
    desk.provider.script_route(CREATE, dropped())
    job = desk.submitted(*desk.plain(2))
    desk.poll()
    wave = desk.waves(job)[0]
    assert wave["provider_batch_id"] == desk.provider.batches[0].id  # on trust: nothing else is there
    desk.answers(text("Yes."))
    desk.round(number=0)
    assert desk.waves(job)[0]["state"] == "unknown"
    assert desk.detail(job)["counts"] == {"in_flight": 2}
    desk.poll(3)
    assert desk.waves(job)[-1]["state"] == "running"
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert desk.job(stranger)["status"] == "running"


def test_two_batches_of_one_size_wait_for_proof(desk: Desk) -> None:
    stranger = desk.submitted(*desk.plain())
    LLMBatch.objects.update(provider_batch_id="unknown-to-us", status="completed")
    desk.provider.script_route(CREATE, lost())
    job = desk.submitted(*desk.plain())
    desk.poll(5)
    assert desk.waves(job)[0]["state"] == "unknown"
    desk.answers(text("Yes."))
    desk.end(number=0)
    desk.poll()
    wave = desk.waves(job)[0]
    assert (wave["state"], wave["provider_batch_id"]) == ("running", desk.provider.batches[1].id)
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert len(desk.submits) == 2
    assert desk.job(stranger)["status"] == "running"


def test_one_create_at_a_time_may_be_without_an_answer(desk: Desk) -> None:
    desk.provider.script_route(CREATE, lost())
    first, second = (str(desk.create(agent)["id"]) for agent in desk.plain(2))
    desk.poll()
    assert [desk.waves(job)[0]["state"] for job in (first, second)] == ["unknown", "created"]
    desk.poll()
    assert [desk.waves(job)[0]["state"] for job in (first, second)] == ["running", "running"]
    assert [desk.waves(job)[0]["provider_batch_id"] for job in (first, second)] == [b.id for b in desk.provider.batches]


def test_a_doubt_of_long_ago_holds_nobody_up(desk: Desk) -> None:
    desk.provider.script_route(CREATE, lost())
    desk.submitted(*desk.plain())
    hidden = fault("server", times=0)  # what is at the provider cannot be seen
    desk.provider.script_route("GET /v1/messages/batches", hidden)
    LLMBatch.objects.update(submitted_at=timezone.now() - timedelta(hours=2))
    job = desk.submitted(*desk.plain())
    assert desk.waves(job)[0]["state"] == "running"


def test_a_full_queue_at_the_provider_is_waited_for(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("rate_limit", retry_after=30))
    job = desk.submitted(*desk.plain())
    wave = desk.waves(job)[0]
    assert (wave["state"], bool(wave["next_at"])) == ("created", True)
    from batches.poll import cycle, lease

    with lease.hold() as held:
        assert held is not None
        cycle(held)
    assert len(desk.submits) == 1  # not before the provider said
    desk.poll()
    assert desk.waves(job)[0]["state"] == "running"


def test_a_file_that_is_too_large_is_cut_in_two(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("too_large"))
    agents = desk.plain(5)
    job = desk.submitted(*agents)
    desk.poll()
    waves = desk.waves(job)
    assert sorted(wave["agent_count"] for wave in waves) == [2, 3]
    assert {wave["state"] for wave in waves} == {"running"}
    desk.answers(text("Yes."))
    desk.end(number=0)
    desk.end(number=1)
    desk.poll()
    assert desk.detail(job)["counts"] == {"done": 5}


def test_one_request_that_is_too_large_for_its_provider_fails(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("too_large", times=2))
    job = desk.submitted(*desk.plain())
    desk.poll()
    assert desk.job(job)["status"] == "failed"
    assert desk.submits[-1].status == 413


def test_a_batch_that_is_refused_fails_its_items(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("bad_request", "no such beta"))
    job = desk.submitted(*desk.plain(2))
    assert desk.job(job)["status"] == "failed"
    assert "no such beta" in desk.items(job)[0]["error"]["message"]
    assert list(spool.folder().iterdir()) == []


@pytest.mark.parametrize("kind", ["authentication", "billing"])
def test_what_an_operator_must_mend_pauses_the_job(desk: Desk, kind: str) -> None:
    desk.provider.script_route(CREATE, fault(kind))  # type: ignore[arg-type]
    job = desk.submitted(*desk.plain(2))
    detail = desk.detail(job)
    assert (detail["paused"], detail["pause_kind"], detail["phase"]) == (True, kind, "paused")
    assert detail["pause_reason"]
    desk.poll()
    assert len(desk.submits) == 1
    desk.more(job, "/resume", method="POST")
    desk.poll()
    assert desk.detail(job)["counts"] == {"in_flight": 2}
    assert not desk.detail(job)["paused"]


def test_a_damaged_file_is_written_anew(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("rate_limit"))
    agents = desk.plain(2)
    job = desk.submitted(*agents)
    (file,) = spool.folder().iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    desk.poll(2)
    assert desk.detail(job)["counts"] == {"in_flight": 2}
    assert len(desk.provider.batches) == 1
    assert desk.provider.batches[0].custom_ids == [desk.custom_id(agent) for agent in agents]
    assert BatchItem.objects.count() == 2


def test_large_jobs_leave_in_chunks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batches.drivers.base.MOST_REQUESTS", 3)
    job = desk.submitted(*desk.plain(7))
    assert [wave["agent_count"] for wave in desk.waves(job)] == [3, 3, 1]
    desk.answers(text("Yes."))
    for number in range(3):
        desk.end(number=number)
    desk.poll()
    assert desk.detail(job)["counts"] == {"done": 7}


def test_chunks_have_a_size_in_bytes_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batches.drivers.base.MOST_BYTES", 30_000)
    job = desk.submitted(*desk.plain(3), text="x" * 9000)
    assert [wave["agent_count"] for wave in desk.waves(job)] == [2, 1]
    assert all(entry.size < 30_100 for entry in desk.submits)


def test_a_spool_is_nobody_elses_to_read(desk: Desk) -> None:
    desk.provider.script_route(CREATE, fault("rate_limit"))
    desk.submitted(*desk.plain())
    (file,) = spool.folder().iterdir()
    assert (file.stat().st_mode & 0o777, spool.folder().stat().st_mode & 0o777) == (0o600, 0o700)
    desk.poll()
    assert list(spool.folder().iterdir()) == []
