"""Events of the Messages API put together: pure, from recorded streams and from odd ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.anthropic.answer import Assembly, read_message
from agents.providers.base import (
    CallPart,
    ModelResponse,
    ProviderError,
    ReasoningPart,
    RedactedReasoningPart,
    TextDelta,
    TextPart,
)
from tests.agents.providers.asking import CASES, assert_same, calls, feed, text

Event = Mapping[str, Any]


def sse(*events: Event) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def block(index: int, start: Event, *pieces: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces),
        {"type": "content_block_stop", "index": index},
    ]


def call(index: int, name: str, *pieces: str, id: str | None = "toolu_1", input: Any = None) -> list[Event]:
    start = {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def words(index: int, *pieces: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def whole(events: Sequence[Event], stop: str | None = "end_turn", usage: Any = None) -> bytes:
    start = {"type": "message_start", "message": {"id": "m", "usage": usage or {"input_tokens": 5, "output_tokens": 1}}}
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    return sse(start, *events, end, {"type": "message_stop"})


def read(data: bytes, *, size: int = 1, cut: bool = False, names: Mapping[str, str] | None = None) -> ModelResponse:
    assembly = Assembly(names)
    deltas = feed(assembly, data, size=size)
    assert assembly.ended
    response = assembly.finish()
    assert_same(deltas, response, cut=cut)
    return response


def test_it_joins_characters_that_were_cut() -> None:
    response = read((CASES / "streams/anthropic_split_utf8.sse").read_bytes())
    assert response.parts == (TextPart("café 😀"),)
    assert (response.usage.input, response.usage.output, response.usage.known) == (5, 9, True)


def test_it_leaves_out_a_call_that_was_cut_off() -> None:
    response = read((CASES / "streams/anthropic_max_tokens_in_tool.sse").read_bytes(), cut=True)
    assert response.parts == ()
    assert response.stop == "max_tokens"


def test_it_ignores_what_it_does_not_know() -> None:
    response = read((CASES / "streams/anthropic_unknown_events.sse").read_bytes())
    assert response.parts == (TextPart("ok"),)
    assert response.stop == "pause"


def test_it_fails_when_an_error_comes_in_the_middle() -> None:
    assembly = Assembly()
    with pytest.raises(ProviderError) as raised:
        feed(assembly, (CASES / "streams/anthropic_overloaded_midway.sse").read_bytes())
    assert (raised.value.kind, raised.value.started) == ("invalid_response", True)
    assert raised.value.detail == "overloaded_error"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("overloaded_error", "overloaded"), ("api_error", "server"), ("invalid_request_error", "bad_request")],
)
def test_it_tells_the_kind_of_an_error_before_the_first_delta(kind: str, expected: str) -> None:
    with pytest.raises(ProviderError) as raised:
        feed(Assembly(), sse({"type": "error", "error": {"type": kind, "message": "no"}}))
    assert (raised.value.kind, raised.value.started) == (expected, False)
    assert raised.value.retryable is (expected != "bad_request")


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ((), "{}"),
        (("",), "{}"),
        (('{"a": "\\ud83', "d\\ude0", '0"}'), '{"a": "\\ud83d\\ude00"}'),
        (('{"a": "\ud83d', '\ude00"}'), '{"a": "😀"}'),
        (('{"path": ', '"x"'), '{"path": "x"'),
    ],
)
def test_it_joins_the_pieces_of_arguments(pieces: tuple[str, ...], arguments: str) -> None:
    response = read(whole(call(0, "now", *pieces), "tool_use"))
    assert calls(response) == [("now", arguments)]
    assert response.stop == "tool_use"


def test_it_takes_arguments_that_came_whole_with_the_start() -> None:
    assert calls(read(whole(call(0, "now", input={"a": 1}), "tool_use"))) == [("now", '{"a": 1}')]


@pytest.mark.parametrize("ids", [("same", "same"), ("", ""), (None, None), ("a", "a.b")])
def test_it_gives_every_call_an_id_of_its_own(ids: tuple[str | None, str | None]) -> None:
    response = read(whole([*call(0, "f", "{}", id=ids[0]), *call(1, "g", "{}", id=ids[1])], "tool_use"))
    found = [part.id for part in response.parts if isinstance(part, CallPart)]
    assert len(set(found)) == 2
    assert all(found)
    assert found[0] == (ids[0] or found[0])


def test_it_keeps_blocks_apart_that_share_an_index() -> None:
    response = read(whole([*words(0, "hm"), *call(0, "f", '{"a":1}'), *call(0, "g", '{"b":2}', id="t2")], "tool_use"))
    assert text(response) == "hm"
    assert calls(response) == [("f", '{"a":1}'), ("g", '{"b":2}')]


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "tool_use"),
        ("stop_sequence", "tool_use"),
        ("pause_turn", "tool_use"),
        (None, "tool_use"),
        ("future", "tool_use"),
        ("tool_use", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
    ],
)
def test_it_lets_a_call_win_over_the_stop_reason(stop: str | None, expected: str) -> None:
    response = read(whole(call(0, "f", '{"a": 1}'), stop))
    assert response.stop == expected
    assert calls(response) == [("f", '{"a": 1}')]


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "end_turn"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        (None, "end_turn"),
        ("new", "end_turn"),
    ],
)
def test_it_maps_stop_reasons(stop: str | None, expected: str) -> None:
    response = read(whole(words(0, "x"), stop))
    assert (response.stop, response.vendor_stop) == (expected, stop or "")


def test_it_refuses_an_announced_call_that_is_not_there() -> None:
    with pytest.raises(ProviderError) as raised:
        read(whole(words(0, "I will call"), "tool_use"))
    assert raised.value.kind == "no_tool_call"


def test_it_never_runs_an_empty_call_that_the_limit_may_have_cut() -> None:
    events = [*call(0, "f", '{"a": 1}'), *call(1, "wipe", id="t2")]
    assert calls(read(whole(events, "max_tokens"), cut=True)) == [("f", '{"a": 1}')]


def test_it_drops_calls_of_a_refused_answer() -> None:
    response = read(whole([*words(0, "No."), *call(1, "f", '{"a": 1}')], "refusal"), cut=True)
    assert response.parts == (TextPart("No."),)


def test_it_keeps_thinking_and_its_signature_byte_for_byte() -> None:
    signature = "EqQB+/=é\u2028 \t"
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": " a"},
        {"type": "thinking_delta", "thinking": "b\n"},
        {"type": "signature_delta", "signature": signature[:4]},
        {"type": "signature_delta", "signature": signature[4:]},
    )
    hidden = block(1, {"type": "redacted_thinking", "data": "b3BhcXVl"})
    silent = block(2, {"type": "thinking", "thinking": "", "signature": "only"})
    response = read(whole([*thought, *hidden, *silent, *words(3, "x")]))
    assert response.parts == (
        ReasoningPart(" ab\n", signature, "anthropic"),
        RedactedReasoningPart("b3BhcXVl", "anthropic"),
        ReasoningPart("", "only", "anthropic"),
        TextPart("x"),
    )


def test_it_counts_cached_input_as_input() -> None:
    usage = {
        "input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 2}, "cache_creation": None,
    }  # fmt: skip
    found = read(whole(words(0, "x"), usage=usage)).usage
    assert (found.input, found.cached, found.cache_write, found.output, found.reasoning) == (30, 20, 7, 9, 2)


def test_it_says_that_usage_is_unknown() -> None:
    events = [*words(0, "x"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    assert read(sse(*events)).usage.known is False


def test_it_gives_tools_their_own_names_back() -> None:
    response = read(whole(call(0, "a_b_1234", "{}"), "tool_use"), names={"a_b_1234": "a.b"})
    assert calls(response) == [("a.b", "{}")]


@given(
    st.lists(st.text(max_size=6), max_size=5),
    st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=3),
    st.integers(min_value=1, max_value=40),
)
def test_it_streams_what_it_answers(said: list[str], arguments: list[list[str]], size: int) -> None:
    events = words(0, *said)
    for number, pieces in enumerate(arguments):
        events += call(number + 1, "f", *pieces, id=f"t{number}")
    response = read(whole(events), size=size)
    assert len(calls(response)) == len(arguments)


@pytest.mark.parametrize("message", [None, {}, [], "text", {"content": None}, {"content": "text"}])
def test_it_refuses_a_body_that_is_no_message(message: Any) -> None:
    with pytest.raises(ProviderError) as raised:
        read_message(message)
    assert raised.value.kind == "invalid_response"


def test_it_reads_a_whole_message() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"big": 12345678901234567890123, "half": 0.5}},
        {"type": "tool_use", "id": "t", "name": "g", "input": None},
        "odd",
    ]
    response = read_message({"content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 1}})
    assert response.parts[0] == ReasoningPart("hm", "s", "anthropic")
    assert calls(response) == [("f", '{"big": 12345678901234567890123, "half": 0.5}'), ("g", "{}")]
    assert response.stop == "tool_use"


def test_it_trusts_no_call_of_a_whole_message_that_hit_the_limit() -> None:
    content = [{"type": "tool_use", "id": "t", "name": "f", "input": {"path": "x"}}]
    assert read_message({"content": content, "stop_reason": "max_tokens"}).parts == ()


def test_it_says_a_delta_only_once() -> None:
    assembly = Assembly()
    assert feed(assembly, whole(words(0, "a", "", "b"))) == [TextDelta("a"), TextDelta("b")]
