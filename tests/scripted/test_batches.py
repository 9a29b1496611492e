"""Batches of both vendors, driven by the real SDKs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.scripted.answers import answer, fault, lost, polled, raw, text
from tests.scripted.server import ScriptedProvider

IDS = ("item-1", "item-2", "item-3", "item-4")


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(max_retries=0) as made:
        yield made


@pytest.fixture
def chat(provider: ScriptedProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(max_retries=0) as made:
        yield made


def row(custom_id: str, **params: Any) -> Any:
    messages = [{"role": "user", "content": f"question of {custom_id}"}]
    return {
        "custom_id": custom_id,
        "params": {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": messages, **params},
    }


def line(custom_id: str, **body: Any) -> dict[str, Any]:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": f"question of {custom_id}"}], **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def create(client: anthropic.Anthropic, *rows: Any) -> str:
    return client.messages.batches.create(requests=rows or [row(name) for name in IDS]).id


def outcomes(client: anthropic.Anthropic, batch: str) -> dict[str, str]:
    return {found.custom_id: found.result.type for found in client.messages.batches.results(batch)}


def upload(chat: openai.OpenAI, *lines: Any) -> str:
    content = "".join(json.dumps(found) + "\n" for found in lines or [line(name) for name in IDS])
    return chat.files.create(file=("in.jsonl", io.BytesIO(content.encode())), purpose="batch").id


def start(chat: openai.OpenAI, *lines: Any) -> Any:
    file = upload(chat, *lines)
    return chat.batches.create(
        input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h", metadata={"job": "7"}
    )


def read_file(chat: openai.OpenAI, file: str | None) -> dict[str, Any]:
    assert file is not None
    found = [json.loads(line) for line in chat.files.content(file).text.splitlines()]
    return {entry["custom_id"]: entry for entry in found}


# --- Anthropic ------------------------------------------------------------------------------------


def test_it_ends_a_batch_by_itself_after_a_poll(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("item-2", answer(text("for two")))
    batch = create(client)
    first, second = client.messages.batches.retrieve(batch), client.messages.batches.retrieve(batch)
    assert (first.processing_status, second.processing_status) == ("in_progress", "ended")
    assert (first.request_counts.processing, second.request_counts.succeeded) == (4, 4)
    found = {item.custom_id: item for item in client.messages.batches.results(batch)}
    assert list(found) != list(IDS)
    assert set(found) == set(IDS)
    assert found["item-2"].result.message.content[0].text == "for two"  # type: ignore[union-attr]
    assert provider.refused == []


def test_it_ends_a_batch_as_the_test_says(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.settings.batch_polls = None
    batch = create(client)
    assert {client.messages.batches.retrieve(batch).processing_status for _ in range(3)} == {"in_progress"}
    with pytest.raises(anthropic.AnthropicError):
        outcomes(client, batch)
    provider.end_batch(batch, {"item-1": "succeeded", "item-2": "rate_limit", "item-3": "canceled"}, default="expired")
    assert outcomes(client, batch) == dict(zip(IDS, ("succeeded", "errored", "canceled", "expired"), strict=True))


def test_it_errors_the_items_that_are_invalid(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    batch = create(client, row("good"), row("bad", messages=[{"role": "user", "content": " "}]))
    assert len(provider.refused) == 1
    assert "bad: messages: text content blocks" in provider.refused[0]
    provider.end_batch(batch)
    assert outcomes(client, batch) == {"good": "succeeded", "bad": "errored"}


def test_it_keeps_what_was_done_before_a_cancel(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.settings.batch_polls = None
    batch = create(client)
    assert client.messages.batches.cancel(batch).processing_status == "canceling"
    assert client.messages.batches.cancel(batch).processing_status == "canceling"
    provider.end_batch(batch, {"item-1": "succeeded", "item-2": "succeeded"}, default="canceled")
    assert sorted(outcomes(client, batch).values()) == ["canceled", "canceled", "succeeded", "succeeded"]
    with pytest.raises(anthropic.BadRequestError):
        client.messages.batches.cancel(batch)


def test_it_sends_result_lines_as_they_are(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    batch = create(client, row("a"), row("b"))
    body = b'\xef\xbb\xbf{"custom_id": "{{id2}}", "result": {"type": "expired"}}\r\n\r\n[]\n{"half'
    provider.end_batch(batch, raw=body)
    found = client.messages.batches.with_raw_response.results(batch).http_response.read()
    assert found == body.replace(b"{{id2}}", b"b")


CREATE_REFUSED = [
    [row("a"), row("a")],
    [row("a b")],
    [row("")],
    [row("x" * 65)],
    [{"custom_id": "a"}],
]


@pytest.mark.parametrize("rows", CREATE_REFUSED)
def test_it_refuses_a_batch(provider: ScriptedProvider, client: anthropic.Anthropic, rows: list[Any]) -> None:
    with pytest.raises(anthropic.BadRequestError):
        create(client, *rows)
    assert provider.batches == []


def test_it_has_limits(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.settings.batch_requests = 3
    with pytest.raises(anthropic.BadRequestError, match="at most 3"):
        create(client)
    provider.settings.batch_bytes = 400
    with pytest.raises(anthropic.APIStatusError) as caught:
        create(client)
    assert (caught.value.status_code, caught.value.response.json()["error"]["type"]) == (413, "request_too_large")


def test_it_loses_the_answer_of_a_create(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script_route("POST /v1/messages/batches", fault("rate_limit", retry_after=1), lost(), lost(hang=True))
    with pytest.raises(anthropic.RateLimitError):
        create(client)
    assert provider.batches == []
    with pytest.raises(anthropic.APIConnectionError):
        create(client)
    with pytest.raises(anthropic.APITimeoutError):
        client.with_options(timeout=0.2).messages.batches.create(requests=[row("late")])
    listed = list(client.messages.batches.list(limit=1))
    assert [found.id for found in listed] == [batch.id for batch in reversed(provider.batches)]
    assert len(listed) == 2


def test_it_flickers(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    batch = create(client, row("a"))
    script: list[dict[str, Any]] = [
        {"http": 404},
        {"http": 200, "processing_status": "reviewing"},
        {"http": "timeout"},
        {"http": 200},
    ]
    provider.script_route("GET /v1/messages/batches/*", *polled(script))
    batches = client.with_options(timeout=0.2).messages.batches
    with pytest.raises(anthropic.NotFoundError):
        batches.retrieve(batch)
    assert str(batches.retrieve(batch).processing_status) == "reviewing"
    with pytest.raises(anthropic.APITimeoutError):
        batches.retrieve(batch)
    assert batches.retrieve(batch).processing_status == "ended"


def test_it_has_late_and_foreign_results(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    batch = create(client, row("a"))
    html = raw(b"<!doctype html><h1>502</h1>", content_type="text/html")
    provider.script_route("GET /v1/messages/batches/*/results", fault("not_found"), html)
    provider.end_batch(batch)
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.with_raw_response.results(batch)
    assert b"doctype" in client.messages.batches.with_raw_response.results(batch).http_response.read()
    assert outcomes(client, batch) == {"a": "succeeded"}


def test_it_deletes_an_ended_batch_only(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    batch = create(client)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.batches.delete(batch)
    provider.end_batch(batch)
    assert client.messages.batches.delete(batch).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch)


# --- OpenAI ---------------------------------------------------------------------------------------


def test_it_completes_a_batch_of_openai(provider: ScriptedProvider, chat: openai.OpenAI) -> None:
    provider.settings.batch_polls = 2
    provider.script("item-3", answer(text("for three")))
    batch = start(chat)
    assert (batch.status, batch.metadata) == ("validating", {"job": "7"})
    found = [chat.batches.retrieve(batch.id) for _ in range(3)]
    assert [seen.status for seen in found] == ["in_progress", "in_progress", "completed"]
    assert found[2].error_file_id is None
    assert found[2].request_counts is not None
    assert (found[2].request_counts.completed, found[2].request_counts.failed) == (4, 0)
    output = read_file(chat, found[2].output_file_id)
    assert output["item-3"]["response"]["body"]["choices"][0]["message"]["content"] == "for three"
    assert provider.refused == []


def test_it_expires_a_batch_and_keeps_what_was_done(provider: ScriptedProvider, chat: openai.OpenAI) -> None:
    batch = start(chat, line("a"), line("b"), line("bad", messages=[]))
    provider.end_batch(batch.id, {"b": "expired"})
    found = chat.batches.retrieve(batch.id)
    assert found.status == "expired"
    errors = read_file(chat, found.error_file_id)
    assert list(read_file(chat, found.output_file_id)) == ["a"]
    assert (errors["b"]["error"]["code"], errors["bad"]["response"]["status_code"]) == ("batch_expired", 400)


def test_it_cancels_a_batch_of_openai(provider: ScriptedProvider, chat: openai.OpenAI) -> None:
    provider.settings.batch_polls = None
    batch = start(chat)
    assert chat.batches.cancel(batch.id).status == "cancelling"
    provider.end_batch(batch.id, {"item-1": "succeeded"}, default="canceled")
    found = chat.batches.retrieve(batch.id)
    assert found.status == "cancelled"
    assert list(read_file(chat, found.output_file_id)) == ["item-1"]
    with pytest.raises(openai.ConflictError):
        chat.batches.cancel(batch.id)


def test_it_answers_with_empty_file_ids(provider: ScriptedProvider, chat: openai.OpenAI) -> None:
    batch = start(chat)
    provider.end_batch(batch.id)
    provider.script_route("GET /v1/batches/*", *polled([{"http": 200, "error_file_id": ""}]))
    assert chat.batches.retrieve(batch.id).error_file_id == ""


BAD_LINES = [
    ([line("a"), line("a")], "duplicate_custom_id"),
    ([line("a"), line("b", model="gpt-4o")], "mismatched_model"),
    ([{**line("a"), "url": "/v1/embeddings"}], "mismatched_url"),
    ([{"method": "POST"}], "missing_required_parameter"),
    (["text"], "missing_required_parameter"),
]


@pytest.mark.parametrize(("lines", "code"), BAD_LINES)
def test_it_fails_a_batch_in_its_validation(
    provider: ScriptedProvider, chat: openai.OpenAI, lines: list[Any], code: str
) -> None:
    batch = start(chat, *lines)
    found = chat.batches.retrieve(batch.id)
    assert (found.status, found.output_file_id) == ("failed", None)
    assert found.errors is not None
    assert found.errors.data is not None
    assert [error.code for error in found.errors.data] == [code]
    assert provider.refused


def test_it_fails_a_batch_as_the_test_says(provider: ScriptedProvider, chat: openai.OpenAI) -> None:
    batch = start(chat)
    provider.fail_batch(batch.id, "token_limit_exceeded")
    assert chat.batches.retrieve(batch.id).status == "failed"
    assert provider.await_batches(1) == [batch.id]


def test_it_refuses_foreign_files(chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="No such File"):
        chat.batches.create(input_file_id="file-x", endpoint="/v1/chat/completions", completion_window="24h")
    with pytest.raises(openai.BadRequestError, match="jsonl"):
        chat.files.create(file=("in.txt", b"x"), purpose="batch")
    with pytest.raises(openai.NotFoundError):
        chat.files.retrieve("file-x")


def test_it_lists_batches_in_pages(chat: openai.OpenAI) -> None:
    made = [start(chat).id for _ in range(3)]
    assert [batch.id for batch in chat.batches.list(limit=2)] == made[::-1]
