"""Failures, pace and odd bytes on the Messages side, as the real anthropic SDK meets them."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import pytest

from tests.scripted.answers import Answer, answer, dropped, fault, hang, raw, text, tokens
from tests.scripted.server import ScriptedProvider
from tests.scripted.test_anthropic_sdk import PLAIN, ask, client

__all__ = ["client"]

SPLIT = (
    'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],'
    '"usage":{"input_tokens":5,"output_tokens":1}}}\n\n'
    'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"café 😀"}}\n\n'
    'data: {"type":"content_block_stop","index":0}\n\n'
    'data: {"type":"message_stop"}\n\n'
)


def named(stream: str) -> bytes:
    """The stream with an ``event:`` line before each ``data:`` line."""
    return re.sub(r'data: {"type":"(\w+)"', r"event: \1\n\g<0>", stream).encode()


FAULTS = [
    ("rate_limit", anthropic.RateLimitError, 429),
    ("overloaded", anthropic.InternalServerError, 529),
    ("server", anthropic.InternalServerError, 500),
    ("timeout", anthropic.APIStatusError, 408),
    ("authentication", anthropic.AuthenticationError, 401),
    ("billing", anthropic.APIStatusError, 402),
    ("no_credit", anthropic.BadRequestError, 400),
    ("too_large", anthropic.APIStatusError, 413),
    ("prompt_too_long", anthropic.BadRequestError, 400),
]


@pytest.mark.parametrize(("kind", "error", "status"), FAULTS)
def test_it_fails_with_the_vendors_errors(
    provider: ScriptedProvider,
    client: anthropic.Anthropic,
    kind: Any,
    error: type[anthropic.APIStatusError],
    status: int,
) -> None:
    provider.script("", fault(kind, retry_after=2))
    with pytest.raises(error) as caught:
        ask(client, "hi")
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "2"
    assert caught.value.response.json()["type"] == "error"
    assert provider.refused == []


BROKEN = [
    (dropped(), anthropic.APIConnectionError),
    (answer(text("half"), cut_at_event=4), Exception),
    (answer(text("half"), cut_at_byte=200), Exception),
    (answer(text("half an answer"), error_at=4), anthropic.APIStatusError),
]


@pytest.mark.parametrize(("told", "error"), BROKEN)
def test_it_breaks_in_mid_stream(
    provider: ScriptedProvider, client: anthropic.Anthropic, told: Answer, error: type[Exception]
) -> None:
    provider.script("", told)
    with pytest.raises(error):
        ask(client, "hi", streamed=True)


@pytest.mark.parametrize("kind", ["invalid_json", "html", "empty_body"])
def test_it_answers_200_with_something_else(provider: ScriptedProvider, client: anthropic.Anthropic, kind: Any) -> None:
    provider.script("", fault(kind))
    found = client.messages.with_raw_response.create(**PLAIN, messages=[{"role": "user", "content": "x"}])
    assert found.status_code == 200
    with pytest.raises(ValueError):
        json.loads(found.text())


def test_it_hangs_until_the_client_leaves(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", hang())
    with pytest.raises(anthropic.APITimeoutError):
        ask(client.with_options(timeout=0.2), "hi")
    assert len(provider.await_outcome("gone")) == 1


def test_it_drops_the_answers_under_way_when_it_is_reset(
    provider: ScriptedProvider, client: anthropic.Anthropic
) -> None:
    provider.script("", hang())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, client, "hi")
        provider.await_requests(1)
        provider.reset()
        with pytest.raises(anthropic.APIConnectionError):
            waiting.result(5)
    assert (provider.requests, provider.pending) == ([], 0)


def test_it_holds_an_answer_until_it_is_released(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(text("one two three"), delta_size=4, hold="gate", hold_at=4))
    seen: list[str] = []
    with client.messages.stream(**PLAIN, messages=[{"role": "user", "content": "hi"}]) as stream:
        for piece in stream.text_stream:
            seen.append(piece)
            if len(seen) == 1:
                provider.await_held("gate")
                assert provider.requests[0].outcome == "open"
                provider.release("gate")
    assert "".join(seen) == "one two three"


def test_it_streams_at_the_pace_that_it_is_told(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(tokens(50), delay=4, first_byte=50))
    started = time.monotonic()
    assert ask(client, "hi", streamed=True).content[0].text == "tok " * 50
    assert time.monotonic() - started >= 0.05 + 50 * 0.004
    assert provider.requests[0].events == 50 + 6


def test_it_notices_a_client_that_leaves_in_mid_stream(provider: ScriptedProvider, client: anthropic.Anthropic) -> None:
    provider.script("", answer(tokens(1000), delay=5))
    with client.messages.stream(**PLAIN, messages=[{"role": "user", "content": "hi"}]) as stream:
        next(iter(stream.text_stream))
    (entry,) = provider.await_outcome("gone")
    assert 0 < entry.events < 1000


@pytest.mark.parametrize("pace", [0, 1])
def test_it_sends_recorded_bytes_one_at_a_time(
    provider: ScriptedProvider, client: anthropic.Anthropic, pace: int
) -> None:
    provider.script("", raw(named(SPLIT), pace=pace))
    assert ask(client, "hi", streamed=True).content[0].text == "café 😀"
