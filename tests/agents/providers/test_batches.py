"""Batches at both vendors: lines out, states, result lines in whatever shape they come."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agents import providers
from agents.providers.anthropic import batch as anthropic_batch
from agents.providers.base import BatchProvider, BatchResult, BatchStatus, ProviderError, ToolSpec
from agents.providers.ids import wire_name
from agents.providers.lines import Lines
from agents.providers.openai import batch as openai_batch
from tests.agents.providers.asking import CASES, CLAUDE, GPT, PLAIN, WEATHER, calls, request, text
from tests.scripted.answers import answer, fault, lost, ordinary, patched, raw, tool_use
from tests.scripted.server import ScriptedProvider

BOTH = pytest.mark.parametrize("handle", [PLAIN, GPT])


def vendor(handle: str) -> BatchProvider:
    provider = providers.batch_provider(handle.partition("/")[0])
    assert provider
    return provider


def lines_of(case: str) -> list[bytes]:
    splitter = Lines()
    data = (CASES / "batch" / case).read_bytes()
    found = [line for at in range(0, len(data), 7) for line in splitter.feed(data[at : at + 7])]
    return found + splitter.rest()


def read(handle: str, case: str) -> dict[str, BatchResult]:
    results = [vendor(handle).read_result(line) for line in lines_of(case)]
    found = [result for result in results if result is not None]
    assert len({result.custom_id for result in found}) == len(found)
    for result in found:
        assert (result.response is None) is (result.error is not None)
        assert (result.outcome == "succeeded") is (result.response is not None)
    return {result.custom_id.strip("{}"): result for result in found}


def outcomes(results: dict[str, BatchResult]) -> dict[str, str]:
    return {name: text(found.response) if found.response else found.outcome for name, found in results.items()}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("anthropic_out_of_order.jsonl", {"id1": "one", "id2": "two", "id3": "three", "id4": "four"}),
        ("anthropic_missing_ids.jsonl", {"id1": "one", "id4": "four"}),
        ("anthropic_mixed_outcomes.jsonl", {"id1": "one", "id2": "errored", "id3": "canceled", "id4": "expired"}),
        ("anthropic_non_utf8.jsonl", {"id1": "one", "id2": "tw��", "id3": "three"}),
        ("anthropic_crlf_bom_blank.jsonl", {"id1": "one", "id2": "two\u2028x", "id3": "three"}),
        (
            "anthropic_unknown_things.jsonl",
            {"id1": "one", "id2": "errored", "id3": "errored", "somebody-elses-id": "expired"},
        ),
        ("html_instead_of_results.txt", {}),
    ],
)
def test_it_reads_result_lines_of_anthropic(case: str, expected: dict[str, str]) -> None:
    assert outcomes(read(PLAIN, case)) == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("openai_output.jsonl", {"id1": "one", "id2": "two", "id3": "errored", "id4": "errored"}),
        ("openai_usage_variants.jsonl", {"id1": "one", "id2": "two", "id3": "three"}),
        ("html_instead_of_results.txt", {}),
    ],
)
def test_it_reads_result_lines_of_openai(case: str, expected: dict[str, str]) -> None:
    assert outcomes(read(GPT, case)) == expected


def test_it_reads_calls_and_usage_of_results() -> None:
    found = read(PLAIN, "anthropic_tool_use.jsonl")["id1"].response
    assert found
    assert calls(found) == [("free_tool", '{"x": 1}'), ("gated_tool", '{"n": 2}')]
    used = [found.response.usage for found in read(GPT, "openai_usage_variants.jsonl").values() if found.response]
    assert [(usage.input, usage.output, usage.known) for usage in used] == [(10, 1, True), (20, 2, True), (0, 0, False)]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "credit balance too low"}},
            "insufficient_credits",
        ),
        ({"type": "error", "error": {"type": "billing_error", "message": "x"}}, "insufficient_credits"),
        ({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, "authentication"),
        ({"type": "error", "error": {"type": "permission_error", "message": "x"}}, "bad_request"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, "bad_request"),
        ({"type": "error", "error": {"type": "not_found_error", "message": "x"}}, "unknown_model"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, "rate_limit"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded"),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "server"),
        ({"type": "error", "error": {"type": "timeout_error", "message": "x"}}, "timeout"),
        ({"type": "api_error", "message": "x"}, "server"),
        (None, "server"),
        ("text", "server"),
    ],
)
def test_it_tells_kinds_of_errored_requests(error: Any, kind: str) -> None:
    line = json.dumps({"custom_id": "a", "result": {"type": "errored", "error": error}}).encode()
    result = vendor(PLAIN).read_result(line)
    assert result
    assert result.error
    assert (result.outcome, result.error.kind) == ("errored", kind)


@pytest.mark.parametrize(
    ("entry", "outcome", "kind"),
    [
        ({"response": None, "error": {"code": "batch_expired", "message": "x"}}, "expired", "timeout"),
        ({"response": None, "error": {"code": "batch_cancelled", "message": "x"}}, "canceled", "bad_request"),
        (
            {"response": {"status_code": 429, "body": {"error": {"code": "insufficient_quota"}}}},
            "errored",
            "insufficient_credits",
        ),
        ({"response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}, "errored", "rate_limit"),
        ({"response": {"status_code": 503, "body": None}}, "errored", "overloaded"),
        (
            {"response": {"status_code": 400, "body": {"error": {"code": "context_length_exceeded"}}}},
            "errored",
            "context_overflow",
        ),
        ({"response": {"status_code": 200, "body": None}}, "errored", "invalid_response"),
        ({"response": {}}, "errored", "invalid_response"),
        ({"response": None, "error": None}, "errored", "invalid_response"),
        ({}, "errored", "invalid_response"),
    ],
)
def test_it_tells_kinds_of_failed_lines(entry: Any, outcome: str, kind: str) -> None:
    result = vendor(GPT).read_result(json.dumps({"custom_id": "a", **entry}).encode())
    assert result
    assert result.error
    assert (result.outcome, result.error.kind) == (outcome, kind)


@BOTH
@pytest.mark.parametrize(
    "line", [b"", b"  ", b"[]", b'"text"', b"{", b'{"custom_id": 5}', b'{"custom_id": ""}', b"\xff\xfe", b"[" * 100_000]
)
def test_it_reads_nothing_from_other_lines(handle: str, line: bytes) -> None:
    assert vendor(handle).read_result(line) is None


def test_it_gives_tools_their_own_names_back() -> None:
    content = [{"type": "tool_use", "id": "t", "name": wire_name("a.b"), "input": {}}]
    result = {"type": "succeeded", "message": {"content": content, "stop_reason": "tool_use"}}
    line = json.dumps({"custom_id": "a", "result": result}).encode()
    found = vendor(PLAIN).read_result(line, ["a.b", "c"])
    assert found
    assert found.response
    assert calls(found.response) == [("a.b", "{}")]


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("in_progress", "in_progress"),
        ("canceling", "canceling"),
        ("ended", "ended"),
        ("reviewing", "in_progress"),
        (None, "in_progress"),
    ],
)
def test_it_takes_unknown_states_of_anthropic_for_work(word: Any, state: str) -> None:
    assert anthropic_batch.status({"id": "b", "processing_status": word, "request_counts": None}).state == state


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("validating", "in_progress"),
        ("finalizing", "in_progress"),
        ("completed", "ended"),
        ("cancelled", "ended"),
        ("cancelling", "canceling"),
        ("failed", "failed"),
        ("expired", "expired"),
        ("new", "in_progress"),
        (None, "in_progress"),
    ],
)
def test_it_maps_states_of_openai(word: Any, state: str) -> None:
    assert openai_batch.status({"id": "b", "status": word, "created_at": 1}).state == state


def test_it_takes_an_empty_file_id_for_none() -> None:
    assert openai_batch.result_files({"output_file_id": "f", "error_file_id": ""}) == ["f"]
    assert openai_batch.result_files({"output_file_id": None}) == []


# --- against the scripted vendors -----------------------------------------------------------------


async def submitted(handle: str, directory: Path, *words: str, **options: Any) -> BatchStatus:
    provider = vendor(handle)
    lines = [provider.batch_line(f"c{at}", request(handle, said, **options)) for at, said in enumerate(words)]
    path = directory / "batch.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return await provider.submit_batch(str(path), key="llm-1", count=len(lines))


async def results(handle: str, batch_id: str) -> dict[str, BatchResult]:
    provider = vendor(handle)
    read = [provider.read_result(line) async for line in provider.batch_results(batch_id)]
    return {result.custom_id: result for result in read if result is not None}


@pytest.mark.parametrize("handle", [PLAIN, CLAUDE, GPT])
async def test_it_runs_a_batch(vendors: ScriptedProvider, tmp_path: Path, handle: str) -> None:
    status = await submitted(handle, tmp_path, "hi", "Call the get_weather tool with 'Oslo'", tools=[WEATHER])
    assert status.created_at
    states = [status.state]
    while states[-1] != "ended":
        states.append((await vendor(handle).poll_batch(status.id)).state)
    assert states[0] == "in_progress"
    found = await results(handle, status.id)
    first, second = found["c0"].response, found["c1"].response
    assert first
    assert second
    assert "hi" in text(first)
    assert calls(second) == [("get_weather", '{"city": "Oslo"}')]
    assert vendors.refused == []


async def test_it_sends_a_temperature_with_the_version_that_takes_it(vendors: ScriptedProvider, tmp_path: Path) -> None:
    await submitted(PLAIN, tmp_path, "hi", temperature=0.5)
    assert vendors.refused == []


@BOTH
async def test_it_finds_a_batch_whose_answer_was_lost(vendors: ScriptedProvider, tmp_path: Path, handle: str) -> None:
    route = "POST /v1/messages/batches" if handle == PLAIN else "POST /v1/batches"
    vendors.script_route(route, lost())
    began = time.time()
    with pytest.raises(ProviderError) as raised:
        await submitted(handle, tmp_path, "hi")
    assert raised.value.kind in ("connection", "timeout", "server", "overloaded")
    assert len(vendors.batches) == 1, "a batch is never submitted twice"
    found = await vendor(handle).find_batches(since=began, key="llm-1")
    assert [status.id for status in found] == [vendors.batches[0].id]
    assert await vendor(handle).find_batches(since=began + 1000, key="llm-1") == []


async def test_it_finds_its_own_batch_by_its_key(vendors: ScriptedProvider, tmp_path: Path) -> None:
    await submitted(GPT, tmp_path, "hi")
    assert await vendor(GPT).find_batches(since=0, key="another") == []


@BOTH
@pytest.mark.parametrize(
    ("kind", "status"), [("rate_limit", 429), ("server", 500), ("overloaded", None), ("too_large", 413)]
)
async def test_it_submits_once_whatever_comes(
    vendors: ScriptedProvider, tmp_path: Path, handle: str, kind: Any, status: int | None
) -> None:
    route = "POST /v1/messages/batches" if handle == PLAIN else "POST /v1/batches"
    vendors.script_route(route, fault(kind))
    with pytest.raises(ProviderError) as raised:
        await submitted(handle, tmp_path, "hi")
    assert raised.value.status == (status or raised.value.status)
    assert sum(f"{sent.method} {sent.path}" == route for sent in vendors.requests) == 1


@BOTH
async def test_it_polls_through_failures_that_pass(vendors: ScriptedProvider, tmp_path: Path, handle: str) -> None:
    status = await submitted(handle, tmp_path, "hi")
    word = "processing_status" if handle == PLAIN else "status"
    pattern = "GET /v1/messages/batches/*" if handle == PLAIN else "GET /v1/batches/*"
    vendors.script_route(pattern, fault("rate_limit"), fault("server"), patched(**{word: "reviewing"}), ordinary())
    assert (await vendor(handle).poll_batch(status.id)).state == "in_progress"


@BOTH
async def test_it_says_when_a_batch_is_not_there(vendors: ScriptedProvider, handle: str) -> None:
    with pytest.raises(ProviderError) as raised:
        await vendor(handle).poll_batch("batch_none/..")
    assert raised.value.status == 404
    assert not raised.value.retryable


@BOTH
async def test_it_cancels_a_batch_once_or_twice(vendors: ScriptedProvider, tmp_path: Path, handle: str) -> None:
    vendors.settings.batch_polls = None
    status = await submitted(handle, tmp_path, "hi", "ho")
    assert (await vendor(handle).cancel_batch(status.id)).state in ("canceling", "ended")
    assert (await vendor(handle).cancel_batch(status.id)).state in ("canceling", "ended")
    vendors.end_batch(status.id)
    assert (await vendor(handle).cancel_batch(status.id)).state == "ended"


@BOTH
async def test_it_does_not_take_a_web_page_for_results(vendors: ScriptedProvider, tmp_path: Path, handle: str) -> None:
    status = await submitted(handle, tmp_path, "hi")
    vendors.end_batch(status.id)
    page = (CASES / "batch/html_instead_of_results.txt").read_bytes()
    pattern = "GET /v1/messages/batches/*/results" if handle == PLAIN else "GET /v1/files/*/content"
    vendors.script_route(pattern, raw(b"\n" + page, content_type="text/html"))
    with pytest.raises(ProviderError) as raised:
        await results(handle, status.id)
    assert raised.value.retryable
    assert set(await results(handle, status.id)) == {"c0"}


async def test_it_reads_both_files_of_an_expired_batch(vendors: ScriptedProvider, tmp_path: Path) -> None:
    status = await submitted(GPT, tmp_path, "one", "two", "three")
    vendors.end_batch(status.id, {"c0": "succeeded"}, default="expired", status="expired")
    assert (await vendor(GPT).poll_batch(status.id)).state == "expired"
    found = await results(GPT, status.id)
    assert {name: result.outcome for name, result in found.items()} == {
        "c0": "succeeded",
        "c1": "expired",
        "c2": "expired",
    }


async def test_it_pauses_nothing_itself_when_credit_is_gone(vendors: ScriptedProvider, tmp_path: Path) -> None:
    vendors.script("", fault("no_credit"))
    status = await submitted(PLAIN, tmp_path, "hi")
    vendors.end_batch(status.id)
    error = (await results(PLAIN, status.id))["c0"].error
    assert error
    assert error.kind == "insufficient_credits"


async def test_it_keeps_answers_with_their_requests(vendors: ScriptedProvider, tmp_path: Path) -> None:
    vendors.script("number 1", answer(tool_use("f", {"n": 1}, "same")))
    status = await submitted(PLAIN, tmp_path, *(f"number {at}" for at in range(5)), tools=[ToolSpec("f", "F.", {})])
    vendors.end_batch(status.id)
    found = await results(PLAIN, status.id)
    assert all(f"number {at}" in text(result.response) for at in (0, 2, 3, 4) if (result := found[f"c{at}"]).response)
    assert found["c1"].response
    assert calls(found["c1"].response) == [("f", '{"n": 1}')]
