"""Chunks of chat completions put together: every way in which servers tell calls apart, or do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import CallPart, ModelResponse, ProviderError, ReasoningPart, TextPart
from agents.providers.openai.answer import Assembly, read_completion, read_usage
from tests.agents.providers.asking import CASES, assert_same, calls, feed, text

Piece = Mapping[str, Any]


def chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def piece(arguments: Any = None, *, index: int | None = 0, id: str | None = None, name: str | None = None) -> Piece:
    found: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        found["index"] = index
    return found | ({"id": id} if id is not None else {})


def sse(*chunks: Any, done: bool = True) -> bytes:
    frames = [f"data: {json.dumps(found)}\n\n" for found in chunks]
    return "".join([*frames, "data: [DONE]\n\n" * done]).encode()


def read(data: bytes, *, size: int = 1, cut: bool = False) -> ModelResponse:
    assembly = Assembly()
    deltas = feed(assembly, data, size=size)
    assert assembly.stopped
    response = assembly.finish()
    assert_same(deltas, response, cut=cut)
    return response


def called(*pieces: Piece, finish: str = "tool_calls") -> ModelResponse:
    """The response of a stream in which each piece is a chunk of its own."""
    return read(sse(*(chunk({"tool_calls": [found]}) for found in pieces), chunk({}, finish)))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("openai_same_index", [("read", '{"p":"a"}'), ("read", '{"p":"b"}')]),
        ("openai_interleaved", [("read", '{"p":"a"}'), ("stat", '{"p":"b"}')]),
    ],
)
def test_it_keeps_parallel_calls_apart(case: str, expected: list[tuple[str, str]]) -> None:
    response = read((CASES / f"streams/{case}.sse").read_bytes())
    assert calls(response) == expected
    assert [part.id for part in response.parts if isinstance(part, CallPart)] == ["call_a", "call_b"]
    assert response.stop == "tool_use"


def test_it_reads_usage_from_a_chunk_without_choices() -> None:
    response = read((CASES / "streams/openai_usage_chunk.sse").read_bytes())
    assert text(response) == "Hi"
    assert (response.usage.input, response.usage.output) == (3, 1)


def test_it_ends_without_done() -> None:
    assert text(read((CASES / "streams/openai_no_done_crlf.sse").read_bytes())) == "ok"


def test_it_knows_that_an_answer_without_an_end_has_not_stopped() -> None:
    assembly = Assembly()
    feed(assembly, (CASES / "streams/openai_dies_midway.sse").read_bytes())
    assert (assembly.started, assembly.stopped) == (True, False)


A, B = '{"p":"a"}', '{"p":"b"}'


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([piece(A, id="a", name="f"), piece(B, id="b", name="f")], [A, B], id="same index, whole"),
        pytest.param(
            [piece("", id="a", name="f"), piece(A[:4]), piece(A[4:]), piece("", id="b", name="f"), piece(B)],
            [A, B],
            id="same index, in fragments",
        ),
        pytest.param(
            [piece(A[:4], id="a", name="f"), piece(A[4:], id="a", name="f")], [A], id="id and name in every delta"
        ),
        pytest.param(
            [piece(A[:4], id="a", name="f"), piece(A[4:]), piece(A, id="a", name="f")], [A], id="whole call once more"
        ),
        pytest.param([piece(A, id="a", name="f"), piece("", id="a", name="f")], [A], id="label once more"),
        pytest.param(
            [piece(A, id="a", name="f"), piece(A, index=None, id="a", name="f")], [A], id="once more, no index"
        ),
        pytest.param([piece(A, name="f"), piece(A, name="f")], [A], id="once more, no id"),
        pytest.param(
            [piece(A, index=0, id="a", name="f"), piece(A, index=1, id="a", name="f")], [A, A], id="one id for two"
        ),
        pytest.param([piece(A, id="a", name="f"), piece(B, id="a", name="f")], [A, B], id="one id and index for two"),
        pytest.param([piece(A, index=0, id="", name="f"), piece(B, index=1, id="", name="f")], [A, B], id="empty ids"),
        pytest.param([piece(A, index=0, name="f"), piece(B, index=1, name="f")], [A, B], id="no ids"),
        pytest.param([piece(A, name="f"), piece(B, name="f")], [A, B], id="no ids, same index"),
        pytest.param([piece(A, name="f"), piece("", name="f"), piece(B)], [A, B], id="no ids, same index, fragments"),
        pytest.param([piece(A, index=None, name="f"), piece(B, index=None, name="f")], [A, B], id="no ids, no index"),
        pytest.param([piece("", name="f"), piece(A[:3], id="a"), piece(A[3:])], [A], id="id after the name"),
        pytest.param([piece({"p": "a"}, id="a", name="f")], ['{"p": "a"}'], id="arguments as an object"),
        pytest.param([piece(None, id="a", name="f")], ["{}"], id="null arguments"),
        pytest.param([piece("", id="a", name="f")], ["{}"], id="empty arguments"),
        pytest.param([piece(" ", id="a", name="f")], [" {}"], id="blank arguments"),
        pytest.param([piece("null", id="a", name="f")], ["null"], id="arguments that are no object"),
        pytest.param([piece(A, id="a", name="f"), piece(B)], [A + B], id="glued without a label"),
        pytest.param(
            [piece('{"a":"\\ud83', id="a", name="f"), piece('d\\ude00"}')], ['{"a":"\\ud83d\\ude00"}'], id="escape"
        ),
        pytest.param([piece('{"a":"\ud83d', id="a", name="f"), piece('\ude00"}')], ['{"a":"😀"}'], id="surrogates"),
    ],
)
def test_it_sorts_pieces_to_calls(pieces: Sequence[Piece], expected: list[str]) -> None:
    response = called(*pieces)
    assert calls(response) == [("f", arguments) for arguments in expected]


def test_it_begins_a_call_with_a_new_name_in_the_same_place() -> None:
    assert calls(called(piece("", name="now"), piece("", name="today"))) == [("now", "{}"), ("today", "{}")]
    assert calls(called(piece(A, id="a", name="f"), piece(B, id="a", name="g"))) == [("f", A), ("g", B)]


@pytest.mark.parametrize(
    "chunks",
    [
        [{"id": "x"}, chunk(None), chunk({"role": "assistant"}), chunk({"content": "Hi"}), chunk({}, "stop")],
        [chunk({"role": "assistant", "content": None}), chunk({"content": "Hi", "tool_calls": None}, "stop")],
        [chunk({"content": [{"type": "text", "text": "Hi"}]}), chunk({}, "stop"), {"choices": []}, {"choices": None}],
        [
            {"choices": [], "prompt_filter_results": []},
            chunk({"content": "Hi"}),
            chunk({}, "stop"),
            chunk({"content": "!"}),
        ],
        [chunk({"content": "Hi", "tool_calls": [None, {}, {"function": {}}]}), chunk({}, "stop")],
    ],
)
def test_it_reads_odd_chunks(chunks: list[Any]) -> None:
    response = read(sse(*chunks))
    assert response.parts == (TextPart("Hi"),)
    assert response.stop == "end_turn"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_it_takes_reasoning_where_a_server_sends_it(field: str) -> None:
    response = read(sse(chunk({field: "hm "}), chunk({field: "ok"}), chunk({"content": "Hi"}, "stop")))
    assert response.parts == (ReasoningPart("hm ok", "", "openai"), TextPart("Hi"))


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("eos", "end_turn")],
)
def test_it_maps_finish_reasons(finish: str, expected: str) -> None:
    assert read(sse(chunk({"content": "x"}, finish))).stop == expected


def test_it_takes_a_refusal_as_text() -> None:
    response = read(sse(chunk({"refusal": "No"}), chunk({"refusal": "."}), chunk({}, "stop")))
    assert (text(response), response.stop) == ("No.", "refusal")


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call"])
def test_it_lets_a_call_win_over_the_finish_reason(finish: str) -> None:
    assert called(piece(A, id="a", name="f"), finish=finish).stop == "tool_use"


def test_it_refuses_an_announced_call_that_is_not_there() -> None:
    with pytest.raises(ProviderError) as raised:
        read(sse(chunk({"content": "I will"}, "tool_calls")))
    assert (raised.value.kind, raised.value.started) == ("no_tool_call", True)


@pytest.mark.parametrize("last", ['{"path": "a"', ""])
def test_it_leaves_out_the_call_that_the_limit_cut(last: str) -> None:
    data = sse(
        chunk({"tool_calls": [piece(A, id="a", name="f")]}),
        chunk({"tool_calls": [piece(last, index=1, id="b", name="wipe")]}),
        chunk({}, "length"),
    )
    response = read(data, cut=True)
    assert (calls(response), response.stop) == ([("f", A)], "max_tokens")


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "boom", "type": "server_error"}},
        {"object": "error", "message": "boom", "code": 500},
        {"error": "boom"},
    ],
)
def test_it_fails_on_an_error_in_place_of_a_chunk(error: Any) -> None:
    with pytest.raises(ProviderError) as raised:
        feed(Assembly(), sse(chunk({"content": "half"}), error))
    assert (raised.value.kind, raised.value.started) == ("invalid_response", True)
    assert "boom" in raised.value.message
    with pytest.raises(ProviderError) as raised:
        feed(Assembly(), sse(error))
    assert (raised.value.kind, raised.value.started) == ("server", False)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 1}, (10, 1, 0, 0, True)),
        ({"input_tokens": 20, "output_tokens": 2}, (20, 2, 0, 0, True)),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}, (9, 3, 4, 0, True)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            (9, 3, 8, 2, True),
        ),
        ({"prompt_tokens": None, "completion_tokens": "3", "prompt_tokens_details": None}, (0, 0, 0, 0, False)),
        ({}, (0, 0, 0, 0, False)),
    ],
)
def test_it_reads_usage_in_every_spelling(usage: Any, expected: tuple[int, int, int, int, bool]) -> None:
    found = read_usage(usage)
    assert (found.input, found.output, found.cached, found.reasoning, found.known) == expected


@given(
    st.lists(st.text(max_size=6), max_size=5),
    st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=4), max_size=3),
    st.integers(min_value=1, max_value=40),
)
def test_it_streams_what_it_answers(said: list[str], arguments: list[list[str]], size: int) -> None:
    chunks = [chunk({"content": found}) for found in said]
    for index, pieces in enumerate(arguments):
        chunks.append(chunk({"tool_calls": [piece("", index=index, id=f"c{index}", name="f")]}))
        chunks += [chunk({"tool_calls": [piece(found, index=index)]}) for found in pieces]
    response = read(sse(*chunks, chunk({}, "stop")), size=size)
    assert len(calls(response)) == len(arguments)


def completion(message: Any, finish: str = "stop") -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def test_it_reads_a_whole_completion() -> None:
    found = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": A}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": A}},
        {"id": None, "function": {"name": "g", "arguments": None}},
    ]
    response = read_completion(completion({"content": "x", "reasoning_content": "hm", "tool_calls": found}))
    assert calls(response) == [("f", A), ("f", A), ("g", "{}")]
    assert len({part.id for part in response.parts if isinstance(part, CallPart)}) == 3
    assert response.stop == "tool_use"


@pytest.mark.parametrize("body", [None, {}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}])
def test_it_refuses_a_body_that_is_no_completion(body: Any) -> None:
    with pytest.raises(ProviderError) as raised:
        read_completion(body)
    assert raised.value.kind == "invalid_response"
