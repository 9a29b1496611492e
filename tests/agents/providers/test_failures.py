"""Failures in words: kinds, and nothing secret in them."""

from __future__ import annotations

from typing import Any

import pytest

from agents.providers.base import ProviderError
from agents.providers.calls import Retries
from agents.providers.failures import classify, redact, refusal, retry_after
from tests.agents.providers.asking import GPT, PLAIN, complete
from tests.scripted.answers import fault
from tests.scripted.server import ScriptedProvider


@pytest.mark.parametrize(
    ("status", "message", "types", "kind"),
    [
        (400, "prompt is too long: 208310 tokens > 200000 maximum", ("invalid_request_error",), "context_overflow"),
        (400, "input length and `max_tokens` exceed context limit: 1 + 2 > 3", (), "context_overflow"),
        (400, "This model's maximum context length is 8192 tokens.", ("context_length_exceeded",), "context_overflow"),
        (400, "Requested tokens (5000) exceed context window of 4096", (), "context_overflow"),
        (400, "the request exceeds the available context size, try increasing it", (), "context_overflow"),
        (413, "", ("request_too_large",), "context_overflow"),
        (400, "Your credit balance is too low.", ("invalid_request_error",), "insufficient_credits"),
        (429, "", ("insufficient_quota",), "insufficient_credits"),
        (429, "You exceeded your current quota, please check your plan.", (), "insufficient_credits"),
        (429, "Rate limit reached. Add a payment method at /account/billing", ("rate_limit_exceeded",), "rate_limit"),
        (402, "", (), "insufficient_credits"),
        (401, "Incorrect API key provided", ("invalid_api_key", "invalid_request_error"), "authentication"),
        (403, "", ("permission_error",), "bad_request"),
        (403, "", (), "authentication"),
        (404, "model: x", ("not_found_error",), "unknown_model"),
        (400, "temperature: range: 0..1", ("invalid_request_error",), "bad_request"),
        (422, "", (), "bad_request"),
        (408, "", (), "timeout"),
        (409, "", (), "server"),
        (429, "", (), "rate_limit"),
        (500, "", (), "server"),
        (529, "", ("overloaded_error",), "overloaded"),
        (500, "prompt is too long", ("api_error",), "server"),
        (None, "Overloaded", ("overloaded_error",), "overloaded"),
        (None, "what", (), "server"),
    ],
)  # fmt: skip
def test_it_names_the_kind(status: int | None, message: str, types: tuple[str, ...], kind: str) -> None:
    assert classify(status, message, *types) == kind


@pytest.mark.parametrize(
    "body", [None, "", "<html>secret path /srv/x</html>", [], 5, {"error": None}, {"detail": [{"loc": 1}]}]
)
def test_it_says_something_for_every_body(body: Any) -> None:
    error = refusal("Vendor", body, status=500)
    assert error.message.startswith("Vendor answered 500")
    assert "html" not in error.message


def test_it_bounds_a_long_message() -> None:
    assert len(refusal("Vendor", {"error": {"message": "x" * 100_000}}, status=400).message) < 3000


@pytest.mark.parametrize(
    "text",
    [
        "key sk-ant-api03-abcdef is wrong",
        "key sk-proj-****wxyz",
        "Authorization: Bearer abc.def",
        "it was hidden-key-1",
    ],
)
def test_it_hides_keys(text: str) -> None:
    shown = redact(text, ["hidden-key-1"])
    assert "[key]" in shown
    assert not any(part in shown for part in ("abcdef", "wxyz", "abc.def", "hidden-key-1"))


@pytest.mark.parametrize("handle", [PLAIN, GPT])
async def test_it_shows_no_key_of_ours(vendors: ScriptedProvider, handle: str) -> None:
    key = "sk-ant-test-key" if handle == PLAIN else "sk-test-key"
    vendors.script("", fault("authentication", f"Incorrect API key provided: {key}."))
    with pytest.raises(ProviderError) as raised:
        await complete(handle, "hi")
    error = raised.value
    assert key not in f"{error} {error!r} {error.message} {error.detail} {error.__cause__!r}"
    assert error.__suppress_context__


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_it_reads_how_long_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


def test_it_backs_off() -> None:
    retries = Retries(2, 1.0)
    error = ProviderError("server", "x")
    first, second = retries.delay(error, 0), retries.delay(error, 1)
    assert first
    assert second
    assert 0.75 <= first <= 1.25
    assert 1.5 <= second <= 2.5
    assert retries.delay(error, 2) is None
    assert retries.delay(ProviderError("server", "x", started=True), 0) is None
    assert retries.delay(ProviderError("bad_request", "x"), 0) is None
    assert retries.delay(ProviderError("rate_limit", "x", retry_after=7), 0) == 7
