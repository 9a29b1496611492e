"""Whole calls through the real SDKs against the scripted vendors: streams, retries, refusals, cancellation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from agents import providers
from agents.providers import calls as calls_module
from agents.providers.base import ModelResponse, ProviderError, ReasoningPart, TextDelta
from agents.providers.openai.answer import Assembly as OpenAIAssembly
from tests.agents.providers.asking import (
    ADAPTIVE,
    CASES,
    CLAUDE,
    DICE,
    GPT,
    LOCAL,
    O3,
    PLAIN,
    WEATHER,
    assert_same,
    assistant,
    calls,
    complete,
    stream,
    stream_of,
    text,
    user,
)
from tests.scripted.answers import answer, dropped, fault, hang, raw, thinking, tokens, tool_use
from tests.scripted.answers import text as said
from tests.scripted.server import ScriptedProvider

BOTH = pytest.mark.parametrize("handle", [PLAIN, GPT])
ALL = pytest.mark.parametrize("handle", [PLAIN, CLAUDE, ADAPTIVE, GPT, O3, LOCAL])
WAYS = pytest.mark.parametrize("ask", [stream, complete])


async def failed(ask: Any, handle: str, *messages: Any, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await ask(handle, *(messages or ("hi",)), **options)
    return raised.value


@ALL
async def test_it_streams_and_completes(vendors: ScriptedProvider, handle: str) -> None:
    options: dict[str, Any] = {"tools": [WEATHER, DICE], "parallel_tool_calls": True}
    words = "Call the get_weather tool with 'Oslo' and call the roll_dice_tool with 16 sides"
    deltas, streamed = await stream(handle, words, **options)
    assert_same(deltas, streamed)
    whole = await complete(handle, words, **options)
    for response in (streamed, whole):
        assert calls(response) == [("get_weather", '{"city": "Oslo"}'), ("roll_dice_tool", '{"num_sides": 16}')]
        assert response.stop == "tool_use"
        assert response.usage.known
        assert response.request_id.startswith("req_")
    assert vendors.refused == []


@pytest.mark.parametrize("handle", [CLAUDE, ADAPTIVE, "openai/deepseek-reasoner"])
async def test_it_thinks_by_default(vendors: ScriptedProvider, handle: str) -> None:
    _, response = await stream(handle, "hi")
    assert isinstance(response.parts[0], ReasoningPart)
    assert response.parts[0].text
    _, second = await stream(handle, "hi", assistant(*response.parts), "again")
    assert text(second)
    assert vendors.refused == []


async def test_it_uses_one_connection_for_calls_in_a_row(
    vendors: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_module, "AFTER_END", 10.0)  # a busy machine may take long to end an answer
    for _ in range(3):
        await stream(PLAIN, "hi")
        await complete(PLAIN, "hi")
    assert len(vendors.world.connections) == 1


@BOTH
async def test_it_joins_bytes_that_come_one_by_one(vendors: ScriptedProvider, handle: str) -> None:
    name = "anthropic_split_utf8" if handle == PLAIN else "openai_interleaved"
    vendors.script("", raw((CASES / f"streams/{name}.sse").read_bytes(), pace=1))
    deltas, response = await stream(handle, "hi")
    assert_same(deltas, response)
    assert text(response) == ("café 😀" if handle == PLAIN else "")


# --- retries --------------------------------------------------------------------------------------

PASSING = ["timeout", "conflict", "rate_limit", "server", "bad_gateway", "gateway_timeout", "overloaded"]


@BOTH
@WAYS
@pytest.mark.parametrize("kind", PASSING)
async def test_it_repeats_what_may_pass(vendors: ScriptedProvider, ask: Any, handle: str, kind: Any) -> None:
    vendors.script("", fault(kind, times=2))
    await ask(handle, "hi")
    assert len(vendors.generations) == 3


@BOTH
@WAYS
async def test_it_repeats_a_connection_that_was_lost(vendors: ScriptedProvider, ask: Any, handle: str) -> None:
    vendors.script("", dropped(), dropped())
    await ask(handle, "hi")
    assert len(vendors.generations) == 3


@BOTH
@pytest.mark.parametrize(
    ("kind", "expected", "status", "requests"),
    [
        ("bad_request", "bad_request", 400, 1),
        ("authentication", "authentication", 401, 1),
        ("billing", "insufficient_credits", 402, 1),
        ("permission", None, 403, 1),
        ("not_found", "unknown_model", 404, 1),
        ("too_large", "context_overflow", 413, 1),
        ("prompt_too_long", "context_overflow", 400, 1),
        ("rate_limit", "rate_limit", 429, 3),
        ("server", "server", 500, 3),
        ("overloaded", "overloaded", None, 3),
        ("gateway_timeout", "timeout", 504, 3),
    ],
)
@WAYS
async def test_it_tells_failures_apart(
    vendors: ScriptedProvider, ask: Any, handle: str, kind: Any, expected: str | None, status: int | None, requests: int
) -> None:
    vendors.script("", fault(kind, times=9))
    error = await failed(ask, handle)
    assert error.kind == (expected or error.kind)
    assert error.status == (status or error.status)
    assert not error.started
    assert len(vendors.generations) == requests


@pytest.mark.parametrize(("handle", "kind"), [(PLAIN, "no_credit"), (GPT, "quota")])
async def test_it_does_not_repeat_what_money_would_solve(vendors: ScriptedProvider, handle: str, kind: Any) -> None:
    vendors.script("", fault(kind, times=9))
    assert (await failed(stream, handle)).kind == "insufficient_credits"
    assert len(vendors.generations) == 1


async def test_it_waits_as_long_as_the_vendor_asks(vendors: ScriptedProvider) -> None:
    vendors.script("", fault("rate_limit", retry_after=1))
    began = time.monotonic()
    await complete(PLAIN, "hi")
    assert 1.0 <= time.monotonic() - began < 3.0


async def test_it_gives_up_when_the_vendor_asks_for_too_long_a_wait(vendors: ScriptedProvider) -> None:
    vendors.script("", fault("rate_limit", retry_after=3600))
    error = await failed(complete, PLAIN)
    assert (error.kind, error.retry_after) == ("rate_limit", 3600.0)


@BOTH
async def test_it_does_not_repeat_an_answer_that_has_begun(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", answer(tokens(20), cut_at_event=10))
    error = await failed(stream, handle)
    assert (error.kind, error.started, error.retryable) == ("invalid_response", True, False)
    assert len(vendors.generations) == 1


@BOTH
async def test_it_fails_when_an_error_comes_in_the_middle(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", answer(tokens(20), error_at=10))
    error = await failed(stream, handle)
    assert (error.kind, error.started) == ("invalid_response", True)
    assert len(vendors.generations) == 1


async def test_it_repeats_an_answer_that_broke_before_its_first_delta(vendors: ScriptedProvider) -> None:
    vendors.script("", answer(tokens(5), cut_at_event=1), answer(tokens(5), error_at=1), answer(tokens(5)))
    _, response = await stream(PLAIN, "hi")
    assert text(response) == "tok " * 5
    assert len(vendors.generations) == 3


@BOTH
async def test_it_fails_when_a_stream_ends_too_early(vendors: ScriptedProvider, handle: str) -> None:
    name = "anthropic_overloaded_midway" if handle == PLAIN else "openai_dies_midway"
    vendors.script("", raw((CASES / f"streams/{name}.sse").read_bytes()))
    error = await failed(stream, handle)
    assert (error.kind, error.started) == ("invalid_response", True)


@BOTH
@WAYS
@pytest.mark.parametrize("kind", ["invalid_json", "html"])
async def test_it_cannot_use_what_is_no_answer(vendors: ScriptedProvider, ask: Any, handle: str, kind: Any) -> None:
    vendors.script("", fault(kind, times=9))
    error = await failed(ask, handle)
    assert error.kind == "invalid_response"
    assert len(vendors.generations) == 1


@BOTH
async def test_it_takes_an_empty_stream_for_a_lost_connection(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", fault("empty_body", times=9))
    assert (await failed(stream, handle)).kind == "connection"
    assert len(vendors.generations) == 3


@BOTH
async def test_it_cannot_use_garbage_in_a_stream(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", raw(b'data: {"type": "ping"}\n\ndata: {"half\n\ndata: {}\n\n'))
    assert (await failed(stream, handle)).kind == "invalid_response"


@pytest.mark.parametrize(("handle", "word"), [(PLAIN, "tool_use"), (GPT, "tool_calls")])
@WAYS
async def test_it_names_a_call_that_was_announced_and_is_not_there(
    vendors: ScriptedProvider, ask: Any, handle: str, word: str
) -> None:
    vendors.script("", answer(said("now"), stop_reason=word))
    assert (await failed(ask, handle)).kind == "no_tool_call"


@BOTH
@WAYS
async def test_it_bears_silence_only_for_a_while(vendors: ScriptedProvider, ask: Any, handle: str) -> None:
    vendors.script("", hang(), hang(), hang())
    error = await failed(ask, handle, "hi", timeout=0.15)
    assert error.kind == "timeout"
    assert len(vendors.generations) == 3


async def test_it_does_not_bound_an_answer_that_keeps_coming(vendors: ScriptedProvider) -> None:
    vendors.script("", answer(tokens(12), delay=50))
    _, response = await stream(PLAIN, "hi", timeout=0.3)
    assert text(response) == "tok " * 12


async def test_it_fails_where_nobody_listens(vendors: ScriptedProvider, settings: Any) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
    error = await failed(complete, GPT)
    assert error.kind == "connection"
    assert "127.0.0.1" not in error.message


@BOTH
async def test_it_says_that_a_vendor_is_not_configured(vendors: ScriptedProvider, settings: Any, handle: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        setattr(settings, name, "")
    assert (await failed(stream, handle)).kind == "not_configured"
    assert vendors.requests == []


# --- cancellation ---------------------------------------------------------------------------------


async def endless(*pieces: bytes) -> AsyncIterator[bytes]:
    """Pieces, then silence without an end."""
    for piece in pieces:
        yield piece
    await asyncio.Event().wait()


async def test_it_does_not_wait_for_a_server_that_never_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "AFTER_STOP", 0.05)
    chunk = b'data: {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\n'
    found = [item async for item in calls_module.assembled("Vendor", endless(chunk), OpenAIAssembly())]
    assert found[0] == [TextDelta("ok")]
    assert [type(item) for item in found[1:]] == [ModelResponse]
    found = [
        item async for item in calls_module.assembled("Vendor", endless(chunk + b"data: [DONE]\n\n"), OpenAIAssembly())
    ]
    assert len(found) == 2


@BOTH
async def test_it_hangs_up_when_it_is_cancelled(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", answer(tokens(1000), delay=20))
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in stream_of(handle, "hi"):
            begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await asyncio.to_thread(vendors.await_outcome, "gone")


@BOTH
async def test_it_hangs_up_when_nobody_reads_on(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", answer(tokens(1000), delay=20))
    async with aclosing(stream_of(handle, "hi")) as items:
        assert await anext(items) == [TextDelta("tok ")]
    await asyncio.to_thread(vendors.await_outcome, "gone")


@BOTH
async def test_it_hangs_up_before_the_first_byte(vendors: ScriptedProvider, handle: str) -> None:
    vendors.script("", hang())
    task = asyncio.create_task(complete(handle, "hi"))
    await asyncio.to_thread(vendors.await_requests, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(vendors.await_outcome, "gone")


async def test_it_answers_side_by_side(vendors: ScriptedProvider) -> None:
    vendors.script("", answer(thinking("hm"), said("x"), tool_use("f", {}), delay=5, times=0))
    found = await asyncio.gather(*(stream(PLAIN, user(f"{number}")) for number in range(20)))
    assert all(isinstance(response, ModelResponse) and response.stop == "tool_use" for _, response in found)


# --- what is no HTTP ------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = b"5\r\nhello\r\n"
BROKEN = {
    "status": [b"HTTP/9 what\r\n\r\n"],
    "header": [b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\ncontent-length: 5\r\n\r\nhello"],
    "chunk at once": [HEAD + CHUNK + b"zzz\r\nbad\r\n"],
    "chunk later": [HEAD + CHUNK, b"zzz\r\nbad\r\n"],
    "cut": [HEAD + CHUNK, b""],
}


@BOTH
@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
async def test_it_ends_where_a_server_breaks_the_protocol(settings: Any, handle: str, sent: list[bytes]) -> None:
    """As what passes: a proxy on the way failed, not the request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for number, part in enumerate(sent):
            await asyncio.sleep(0.1 * number)  # a packet of its own
            writer.write(part)
        if not sent[-1]:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings.ANTHROPIC_BASE_URL, settings.OPENAI_BASE_URL = url, f"{url}/v1"
        settings.ANTHROPIC_API_KEY = settings.OPENAI_API_KEY = "key"
        settings.LETTAWEB_PROVIDER_RETRIES, settings.LETTAWEB_PROVIDER_TIMEOUT = 0, 1.0
        for call in (stream, complete):
            error = await failed(call, handle)
            assert error.kind in ("connection", "timeout", "invalid_response")
            assert error.retryable
        await providers.close_all()
