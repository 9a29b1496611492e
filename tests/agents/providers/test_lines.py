"""Bytes into lines, events and values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.lines import Events, Joiner, Lines, clean, dump, load, load_line


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(
    st.lists(st.text(alphabet="ab\u2028\u2029\u0085é😀\x0b\x0c")),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
)
def test_it_splits_at_line_ends_only(lines: list[str], end: str, size: int) -> None:
    data = "".join(line + end for line in lines).encode()
    splitter = Lines()
    found = [line for piece in cut(data, size) for line in splitter.feed(piece)]
    assert [line.decode() for line in found] == lines
    assert splitter.rest() == []


def test_it_keeps_a_last_line_without_an_end() -> None:
    splitter = Lines()
    assert splitter.feed(b"a\nb") == [b"a"]
    assert splitter.rest() == [b"b"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"event: x\ndata:a\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\r\n\r\n: note\r\n\r\nretry: 5\r\n\r\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data: a", ["a"]),
        (b"data: caf\xc3\xa9 \xff\n\n", ["café �"]),
        ("data: a\u2028b\u0085c\n\n".encode(), ["a\u2028b\u0085c"]),
        (b"\n\n\n", []),
        (b"<html>\n\n</html>", []),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_it_finds_events(data: bytes, expected: list[str], size: int) -> None:
    events = Events()
    found = [event for piece in cut(data, size) for event in events.feed(piece)]
    assert found + events.rest() == expected
    assert events.seen_event is bool(expected)


@given(st.text(), st.integers(1, 5))
def test_it_joins_surrogates_that_were_cut(text: str, size: int) -> None:
    halves = "".join(chr(unit) for unit in _units(text))
    joiner = Joiner()
    pieces = [joiner.feed(halves[at : at + size]) for at in range(0, len(halves), size)]
    assert "".join(pieces) + joiner.rest() == text


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@pytest.mark.parametrize(
    ("text", "expected"), [("a\ud83d", "a�"), ("\ude00b", "�b"), ("\ud83d\ude00", "😀"), ("é", "é")]
)
def test_it_replaces_half_characters(text: str, expected: str) -> None:
    assert clean(text) == expected
    clean(text).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", 1.5),
        ("1e400", "1e400"),
        ("NaN", None),
        ("-Infinity", None),
        ("12345678901234567890123", 12345678901234567890123),
    ],
)
def test_it_reads_numbers_that_json_can_write_again(text: str, expected: Any) -> None:
    assert load(text) == expected
    assert load(dump(load(text)).decode()) == expected


def test_it_refuses_what_is_nested_too_deeply() -> None:
    with pytest.raises(ValueError):
        load("[" * 100_000)
    assert load_line(b"[" * 100_000) is None
