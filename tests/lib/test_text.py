"""Cleaning of texts and JSON values."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lettaweb.lib.text import UnfitError, clean, clean_json, clean_text, shorten


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\0b\0", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d\0\ude00", "\U0001f600"),
        ("né😀\n\t", "né😀\n\t"),
    ],
)
def test_it_cleans_text(given_text: str, wanted: str) -> None:
    assert clean_text(given_text) == wanted


@given(st.text(alphabet=st.characters(codec=None)))
def test_it_always_gives_text_that_utf8_takes(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean_text(cleaned) == cleaned


def test_it_cleans_the_texts_of_any_value_and_leaves_the_rest() -> None:
    marker = object()
    assert clean({"a\0": ["b\ud800", 1, marker, ("c\0",)]}) == {"a": ["b\ufffd", 1, marker, ["c"]]}


def test_it_copies_plain_json() -> None:
    value = {"a\0": [1, 2.5, True, None, ("x\ud800",)], "big": 10**4299}
    assert clean_json(value) == {"a": [1, 2.5, True, None, ["x\ufffd"]], "big": 10**4299}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "NaN"),
        ([math.inf], "Infinity"),
        ({"a": {1, 2}}, "type set"),
        ({1: 2}, "key of type int"),
        (b"x", "type bytes"),
        ([10**4300], "4300 digits"),
        ([-(10**4300)], "4300 digits"),
        ({"a": 1, "a\0": 2}, "twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "value",
)
def test_it_refuses_what_json_cannot_carry(value: Any, said: str) -> None:
    with pytest.raises(UnfitError, match=said):
        clean_json(value)


def test_it_turns_non_finite_numbers_into_null_when_asked() -> None:
    assert clean_json({"x": [math.nan, -math.inf, 1.5]}, non_finite="null") == {"x": [None, None, 1.5]}


@pytest.mark.parametrize("levels", [256, 257, 100_000])
def test_it_bounds_the_depth(levels: int) -> None:
    value: Any = 1
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    if levels <= 256:
        assert json.dumps(clean_json(value)) == json.dumps(value)
    else:
        with pytest.raises(UnfitError, match="deep"):
            clean_json(value)
    while isinstance(value, list | dict):  # a deep value is freed level by level
        value = value[0] if isinstance(value, list) else value["a"]


def test_it_ends_on_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnfitError, match="deep"):
        clean_json(value)


@pytest.mark.parametrize(("limit", "wanted"), [(5, "abcde"), (4, "abc…"), (1, "…"), (0, "…")])
def test_it_shortens(limit: int, wanted: str) -> None:
    assert shorten("abcde", limit) == wanted
