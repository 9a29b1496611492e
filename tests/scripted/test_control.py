"""The server as a process of its own, driven over the control routes."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scripted.answers import Answer, answer, fault, from_json, raw, text, thinking, to_json, tool_use

ROOT = Path(__file__).parent.parent.parent
HEADERS = {"x-api-key": "sk-ant-test", "anthropic-version": "2026-10-21"}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.scripted"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        process.terminate()


def send(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def ask(base_url: str, content: str) -> tuple[int, Any]:
    body = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": content}]}
    return send(f"{base_url}/v1/messages", body, **HEADERS)


def test_it_is_scripted_from_another_process(base_url: str) -> None:
    send(f"{base_url}/_control/reset", {})
    script = [
        {"marker": "apple", "answers": [to_json(answer(text("scripted")))]},
        {"answers": [{"fault": "overloaded"}]},
        {"route": "GET /v1/models", "answers": [{"fault": "server"}]},
    ]
    assert send(f"{base_url}/_control/script", script) == (200, {"pending": 3})
    assert ask(base_url, "an apple")[1]["content"] == [{"type": "text", "text": "scripted"}]
    assert ask(base_url, "a pear")[0] == 529
    assert send(f"{base_url}/v1/models", **HEADERS)[0] == 500
    assert ask(base_url, " ")[0] == 400
    status, found = send(f"{base_url}/_control/requests?at_least=3&timeout=1")
    assert status == 200
    assert [entry["status"] for entry in found["requests"]] == [200, 529, 500, 400]
    assert len(found["refused"]) == 1
    assert found["requests"][0]["body"]["messages"][0]["content"] == "an apple"


def test_it_ends_batches_and_changes_settings_over_the_wire(base_url: str) -> None:
    send(f"{base_url}/_control/reset", {})
    assert send(f"{base_url}/_control/settings", {"batch_polls": None}) == (200, {})
    params = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
    body = {"requests": [{"custom_id": "a", "params": params}]}
    _, batch = send(f"{base_url}/v1/messages/batches", body, **HEADERS)
    assert send(f"{base_url}/_control/end_batch", {"id": batch["id"], "default": "expired"}) == (200, {})
    _, found = send(f"{base_url}/v1/messages/batches/{batch['id']}", **HEADERS)
    assert (found["processing_status"], found["request_counts"]["expired"]) == ("ended", 1)
    assert send(f"{base_url}/_control/batches")[1]["batches"][0]["custom_ids"] == ["a"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("script", {"answers": [{"colour": 1}]}, 400),
        ("script", {}, 400),
        ("settings", {"colour": 1}, 400),
        ("end_batch", {"id": "none"}, 400),
        ("nothing", {}, 404),
    ],
)
def test_it_tells_what_is_wrong_with_a_control(base_url: str, path: str, body: Any, status: int) -> None:
    assert send(f"{base_url}/_control/{path}", body)[0] == status


def test_it_reports_its_cpu(base_url: str) -> None:
    before = send(f"{base_url}/_control/cpu")[1]
    ask(base_url, "work")
    after = send(f"{base_url}/_control/cpu")[1]
    assert after["cpu_seconds"] > before["cpu_seconds"] > 0
    assert after["requests"] == before["requests"] + 1


@pytest.mark.parametrize(
    "value",
    [
        answer(thinking("a"), tool_use("f", {"a": 1}, "x", pieces=("{", "")), usage="missing", delay=2),
        fault("rate_limit", retry_after=1.5, times=3),
        raw(b"\xff\x00", pace=1),
        answer(text("x"), events=((1, "e", {}),), hold="gate", hold_at=2),
    ],
)
def test_it_has_a_json_form_of_every_answer(value: Answer) -> None:
    assert from_json(json.loads(json.dumps(to_json(value)))) == value
