"""Result files as they come: shuffled, torn, repeated, with strangers in them. Each item gets what is its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from batches.models import BatchItem, LLMBatch, StagedResult
from tests.batches.desk import Desk
from tests.scripted.answers import answer, fault, patched, polled, raw, text

CASES = Path(__file__).resolve().parents[1] / "cases" / "batch"
DONE = ("done", "completed")
NO_RESULT = ("failed", "failed", "missing_result")


def outcomes(desk: Desk, job: str, agents: list[str]) -> list[Any]:
    """State, request status and kind of error of each agent's item, in the order of the request."""
    items = {item["agent_id"]: item for item in desk.items(job)}
    found = [items[agent] for agent in agents]
    return [
        (item["state"], item["request_status"], *([item["error"]["type"]] if item["error"] else [])) for item in found
    ]


def said(desk: Desk, job: str) -> dict[str, str]:
    rows = [message for message in desk.messages(job) if message["role"] == "assistant"]
    return {row["agent_id"]: row["content"][0]["text"] for row in rows}


FILES: list[tuple[str, list[str | None], list[Any]]] = [
    ("anthropic_out_of_order", ["one", "two", "three", "four"], [DONE] * 4),
    ("anthropic_missing_ids", ["one", None, None, "four"], [DONE, NO_RESULT, NO_RESULT, DONE]),
    (
        "anthropic_unknown_things",
        ["one", None, None, None],
        [DONE, ("failed", "failed", "invalid_response"), ("failed", "failed", "invalid_response"), NO_RESULT],
    ),
    ("anthropic_crlf_bom_blank", ["one", "two\u2028x", "three"], [DONE] * 3),
    ("anthropic_non_utf8", ["one", "tw\ufffd\ufffd", "three"], [DONE] * 3),
]


@pytest.mark.parametrize(("name", "texts", "expected"), FILES, ids=[row[0] for row in FILES])
def test_it_reads_a_file(desk: Desk, name: str, texts: list[str | None], expected: list[Any]) -> None:
    agents = desk.plain(len(texts))
    job = desk.submitted(*agents)
    desk.round(raw=(CASES / f"{name}.jsonl").read_bytes())
    assert outcomes(desk, job, agents) == expected
    assert [said(desk, job).get(agent) for agent in agents] == texts
    assert desk.job(job)["status"] == "completed"
    assert not StagedResult.objects.exists()
    assert LLMBatch.objects.get().downloads == (2 if NO_RESULT in expected else 1)  # what lacks is looked for once more


def test_all_agents_are_usable_after_mixed_outcomes(desk: Desk) -> None:
    agents = desk.plain(4)
    job = desk.submitted(*agents)
    lines = (CASES / "anthropic_mixed_outcomes.jsonl").read_bytes().replace(b"credit balance too low", b"bad field")
    desk.round(raw=lines)
    assert outcomes(desk, job, agents) == [
        DONE,
        ("failed", "failed", "bad_request"),
        ("cancelled", "cancelled", "canceled"),
        ("expired", "expired", "expired"),
    ]
    again = desk.submitted(*agents)
    desk.answers(text("Again."))
    desk.round()
    assert desk.detail(again)["counts"] == {"done": 4}
    assert desk.provider.refused == []


def test_a_repeated_line_counts_once(desk: Desk) -> None:
    agents = desk.plain(2)
    job = desk.submitted(*agents)
    line = (CASES / "anthropic_out_of_order.jsonl").read_bytes().split(b"\n")
    first, second = line[1], line[3]
    desk.round(raw=b"\n".join([first, second, first.replace(b'"one"', b'"other"'), first]))
    assert [said(desk, job)[agent] for agent in agents] == ["one", "two"]
    assert [len([m for m in desk.messages(job) if m["agent_id"] == agent]) for agent in agents] == [2, 2]


def test_odd_lines_are_logged_with_their_numbers(desk: Desk) -> None:
    job = desk.submitted(*desk.plain(3))
    lines = (CASES / "anthropic_crlf_bom_blank.jsonl").read_bytes()
    with structlog.testing.capture_logs() as logged:
        desk.round(raw=lines + b'\n{"custom_id": "half a li')
    (odd,) = [line for line in logged if line["event"] == "odd_results"]
    assert (odd["garbled"], odd["foreign"], odd["repeated"]) == ([5, 6, 8], 0, 0)
    assert desk.detail(job)["counts"] == {"done": 3}


def test_another_batchs_line_touches_nothing(desk: Desk) -> None:
    ours, theirs = desk.plain(2)
    job, other = desk.submitted(ours), desk.submitted(theirs)
    foreign = desk.custom_id(theirs).encode()
    lines = (CASES / "anthropic_out_of_order.jsonl").read_bytes().split(b"\n")
    desk.end(number=0, raw=lines[1] + b"\n" + lines[3].replace(b"{{id2}}", foreign))
    desk.poll()
    assert desk.job(job)["status"] == "completed"
    assert desk.detail(other)["counts"] == {"in_flight": 1}


def test_a_file_that_is_torn_off_is_read_once_more(desk: Desk) -> None:
    agents = desk.plain(2)
    job = desk.submitted(*agents)
    lines = (CASES / "anthropic_out_of_order.jsonl").read_bytes().split(b"\n")
    ids = [desk.custom_id(agent).encode() for agent in agents]
    whole = lines[1].replace(b"{{id1}}", ids[0]) + b"\n" + lines[3].replace(b"{{id2}}", ids[1]) + b"\n"
    desk.provider.script_route("GET /v1/messages/batches/*/results", raw(whole[: len(whole) // 2 + 10]))
    desk.end(raw=whole)
    desk.poll()
    assert [said(desk, job)[agent] for agent in agents] == ["one", "two"]
    assert LLMBatch.objects.get().downloads == 2


def test_a_web_page_is_no_result(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    page = (CASES / "html_instead_of_results.txt").read_bytes()
    desk.answers(text("fine"))
    desk.provider.script_route("GET /v1/messages/batches/*/results", raw(page, content_type="text/html"))
    desk.end()
    desk.poll()
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    assert desk.waves(job)[0]["state"] == "downloading"
    desk.poll()
    assert desk.job(job)["status"] == "completed"


def test_only_the_providers_state_decides(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    looks: list[Mapping[str, Any]] = [
        {"processing_status": "in_progress", "ended_at": "2024-08-20T18:37:24.100435Z", "results_url": "https://x"},
        {"processing_status": "reviewing", "request_counts": {"succeeded": 50}},
        {"processing_status": None, "id": "msgbatch_other"},
    ]
    script = json.loads((CASES / "poll_script_unknown_status.json").read_text())[:-1]
    desk.provider.script_route(
        "GET /v1/messages/batches/*", *polled(script), *(patched(**look) for look in looks)
    )  # fmt: skip
    desk.poll(len(script) + len(looks))
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    desk.answers(text("fine"))
    desk.round()
    assert desk.job(job)["status"] == "completed"


def test_a_batch_that_cannot_be_found_for_a_while_is_asked_for_again(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    desk.answers(text("fine"))
    desk.provider.script_route("GET /v1/messages/batches/*/results", fault("not_found"))
    desk.provider.script_route("GET /v1/messages/batches/msgbatch*", fault("not_found"), fault("server"))
    desk.end()
    desk.poll(2)
    wave = desk.waves(job)[0]
    assert (wave["status"], bool(wave["last_error"])) == ("running", True)
    desk.poll()
    assert desk.waves(job)[0]["state"] == "downloading"
    desk.poll()
    assert desk.job(job)["status"] == "completed"


def test_a_batch_that_is_lost_for_good_fails_its_items(desk: Desk) -> None:
    job = desk.submitted(*desk.plain())
    desk.provider.script_route("GET /v1/messages/batches/*", fault("not_found", times=0))
    desk.poll(11)
    assert desk.job(job)["status"] == "running"
    desk.poll()
    assert desk.job(job)["status"] == "failed"
    assert "lost the batch" in desk.items(job)[0]["error"]["message"]


def test_a_second_reading_writes_nothing_twice(desk: Desk) -> None:
    agents = desk.plain(3)
    job = desk.submitted(*agents)
    desk.provider.script("", answer(text("once"), times=0))
    desk.round()
    before = {agent: desk.stored(agent) for agent in agents}
    LLMBatch.objects.update(status="downloading")
    from batches.models import BatchJob

    BatchJob.objects.update(status="running")
    desk.poll()
    assert {agent: desk.stored(agent) for agent in agents} == before
    assert BatchItem.objects.count() == 3
    assert desk.job(job)["status"] == "completed"
