"""The Batch API of OpenAI: a file per model, a validation that may fail as a whole, partial files at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from batches.models import BatchJob
from tests.batches.desk import Desk, roles
from tests.batches.test_approvals_inside import GATED, decide
from tests.scripted.answers import answer, fault, lost, polled, text, tool_use

CASES = Path(__file__).resolve().parents[1] / "cases" / "batch"
MINI, LARGE = "openai/gpt-4o-mini", "openai/gpt-4o"


def plain(desk: Desk, count: int = 1, model: str = MINI) -> list[str]:
    return desk.plain(count, model=model)


def test_one_file_holds_one_model(desk: Desk) -> None:
    agents = [*plain(desk, 2), *plain(desk, 1, LARGE)]
    job = desk.submitted(*agents)
    assert sorted((wave["model"], wave["agent_count"]) for wave in desk.waves(job)) == [
        ("gpt-4o", 1),
        ("gpt-4o-mini", 2),
    ]
    assert {wave["llm_provider"] for wave in desk.waves(job)} == {"openai"}
    desk.answers(text("Yes."))
    desk.end(number=0)
    desk.end(number=1)
    desk.poll()
    assert desk.job(job)["status"] == "completed"
    assert desk.provider.refused == []


def test_tools_go_on_in_the_next_wave(desk: Desk) -> None:
    agent = desk.agent(desk.tool(), agent_type="letta_v1_agent", model=MINI)
    job = desk.submitted(agent)
    desk.answers(tool_use("get_weather", {"location": "Oslo"}), times=1)
    desk.answers(text("Sunny."))
    desk.round()
    desk.round()
    assert desk.job(job)["status"] == "completed"
    assert roles(desk.messages(job), agent) == ["assistant", "tool", "assistant", "user"]
    assert desk.provider.refused == []


def test_vendors_mix_in_one_job(desk: Desk) -> None:
    agents = [desk.plain()[0], plain(desk)[0]]
    job = desk.submitted(*agents)
    assert {wave["llm_provider"] for wave in desk.waves(job)} == {"anthropic", "openai"}
    desk.answers(text("Yes."))
    desk.end(number=0)
    desk.poll()
    assert desk.detail(job)["counts"] == {"done": 1, "in_flight": 1}
    desk.end(number=1)
    desk.poll()
    assert desk.job(job)["status"] == "completed"


def test_it_reads_a_file_with_failures_in_it(desk: Desk) -> None:
    agents = plain(desk, 4)
    job = desk.submitted(*agents)
    desk.round(raw=(CASES / "openai_output.jsonl").read_bytes(), raw_errors=b"")
    states = {item["agent_id"]: (item["state"], (item["error"] or {}).get("type")) for item in desk.items(job)}
    assert [states[agent] for agent in agents] == [
        ("done", None),
        ("done", None),
        ("failed", "server"),
        ("failed", "invalid_response"),
    ]


def test_it_sums_usage_however_it_is_written(desk: Desk) -> None:
    job = desk.submitted(*plain(desk, 3))
    desk.round(raw=(CASES / "openai_usage_variants.jsonl").read_bytes(), raw_errors=b"")
    detail = desk.detail(job)
    assert detail["counts"] == {"done": 3}
    assert (detail["usage"]["prompt_tokens"], detail["usage"]["completion_tokens"]) == (30, 3)
    assert detail["cost"]["unpriced"] == 3


def test_an_expired_batch_keeps_what_was_done(desk: Desk) -> None:
    agents = plain(desk, 3)
    job = desk.submitted(*agents, retry={"max": 1})
    desk.answers(text("Yes."))
    desk.round({agents[0]: "succeeded"}, default="expired")
    assert desk.detail(job)["counts"] == {"done": 1, "in_flight": 2}
    assert desk.waves(job)[0]["status"] == "completed"
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 3}
    assert [len(roles(desk.messages(job), agent)) for agent in agents] == [2, 2, 2]


def test_an_empty_file_id_means_none(desk: Desk) -> None:
    job = desk.submitted(*plain(desk))
    desk.answers(text("Yes."))
    desk.end()
    from tests.scripted.answers import patched

    desk.provider.script_route("GET /v1/batches/*", patched(error_file_id=""), patched(error_file_id=""))
    desk.poll()
    assert desk.job(job)["status"] == "completed"


def test_it_bears_a_flaky_provider(desk: Desk, settings: Any) -> None:
    settings.LETTAWEB_PROVIDER_TIMEOUT = 1.0
    job = desk.submitted(*plain(desk))
    desk.answers(text("Yes."))
    script = json.loads((CASES / "poll_script_flaky.json").read_text())[:-1]
    desk.provider.script_route("GET /v1/batches/*", *polled(script))
    desk.poll(len(script))
    assert desk.detail(job)["counts"] == {"in_flight": 1}
    desk.round()
    assert desk.job(job)["status"] == "completed"


def test_a_used_up_token_quota_is_waited_for(desk: Desk) -> None:
    job = desk.submitted(*plain(desk, 2))
    desk.provider.fail_batch(desk.provider.batches[0].id, "token_limit_exceeded", "Enqueued token limit reached")
    desk.poll()
    assert desk.waves(job)[0]["status"] == "failed"
    assert BatchJob.objects.get().send_after is not None
    desk.poll()
    assert desk.detail(job)["counts"] == {"in_flight": 2}
    assert len(desk.provider.batches) == 2
    desk.answers(text("Yes."))
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 2}
    assert desk.provider.refused == []


def test_a_quota_of_money_pauses(desk: Desk) -> None:
    job = desk.submitted(*plain(desk))
    desk.provider.fail_batch(desk.provider.batches[0].id, "billing_hard_limit_reached", "No money")
    desk.poll()
    detail = desk.detail(job)
    assert (detail["paused"], detail["pause_kind"], detail["counts"]) == (True, "billing", {"ready": 1})


def test_a_refused_file_fails_its_items(desk: Desk) -> None:
    job = desk.submitted(*plain(desk, 2))
    desk.provider.fail_batch(desk.provider.batches[0].id, "mismatched_model", "All requests must be for one model")
    desk.poll()
    assert desk.job(job)["status"] == "failed"
    assert "one model" in desk.items(job)[0]["error"]["message"]


def test_a_refused_line_fails_its_own_item_and_the_others_go_again(desk: Desk) -> None:
    gated = desk.tool(GATED, default_requires_approval=True)
    agents = [desk.agent(gated, agent_type="letta_v1_agent", model=MINI) for _ in range(2)]
    job = desk.submitted(*agents)
    desk.answers(tool_use("gated_tool", {"n": 1}, "call_1"), times=2)
    desk.round()
    desk.more(job, "/pause", method="POST")
    for agent in reversed(agents):  # the items of the next wave are made in another order than its file
        decide(desk, agent, "call_1")
        desk.poll()
    desk.more(job, "/resume", method="POST")
    desk.poll()
    assert desk.provider.batches[-1].custom_ids == [desk.custom_id(agent) for agent in agents]
    desk.provider.fail_batch(desk.provider.batches[-1].id, "invalid_json_line", "Not JSON", line=2)
    desk.poll()
    states = {item["agent_id"]: item["state"] for item in desk.items(job, request_status="failed")}
    assert states == {agents[1]: "failed"}
    assert desk.provider.batches[-1].custom_ids == [desk.custom_id(agents[0])]
    desk.answers(text("Done."))
    desk.round()
    assert desk.detail(job)["counts"] == {"done": 1, "failed": 1}


def test_a_lost_answer_is_found_by_our_key(desk: Desk) -> None:
    desk.provider.script_route("POST /v1/batches", lost())
    job = desk.submitted(*plain(desk, 2))
    assert desk.waves(job)[0]["state"] == "unknown"
    desk.poll()
    assert desk.waves(job)[0]["provider_batch_id"] == desk.provider.batches[0].id
    assert len(desk.submits) == 1


def test_an_upload_that_fails_is_sent_again(desk: Desk) -> None:
    desk.provider.script_route("POST /v1/files", fault("server"))
    job = desk.submitted(*plain(desk))
    desk.poll(3)
    assert desk.waves(job)[0]["state"] == "running"
    assert len(desk.provider.batches) == 1


def test_cancel_keeps_the_partial_file(desk: Desk) -> None:
    from tests import rest

    agents = plain(desk, 2)
    job = desk.submitted(*agents)
    rest.call("PATCH", f"messages/batches/{job}/cancel", expect=204)
    desk.poll()
    desk.provider.script("", answer(text("Was done."), times=0))
    desk.round({agents[0]: "succeeded"}, default="canceled")
    assert desk.job(job)["status"] == "cancelled"
    assert desk.detail(job)["counts"] == {"done": 1, "cancelled": 1}
