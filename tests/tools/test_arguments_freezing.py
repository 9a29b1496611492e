"""Canonical texts and digests of arguments; any object and any text, read."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.arguments import ArgumentsError, canonical, digest, parse


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "ü\n"]}, '{"a":[true,null,"ü\\n"],"b":1}'),
        ({"ä": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"ä":1}'),
        (1e22, "10000000000000000000000"),
        (1e-7, "0.0000001"),
        (-0.0, "0.0"),
        (1000.0, "1000.0"),
        (0.1, "0.1"),
        (2**64 + 1, "18446744073709551617"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_it_writes_canonical_json(value: Any, text: str) -> None:
    assert canonical(value) == text


def test_its_digest_is_the_hash_of_the_canonical_text() -> None:
    assert digest({"b": 1, "a": 2}) == "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
    assert digest({"a": 2, "b": 1}) == digest({"b": 1, "a": 2})
    assert digest({"a": 2}) != digest({"a": "2"})
    assert len(digest({"unread": "\ud800"})) == 64


def test_it_refuses_to_freeze_what_json_does_not_know() -> None:
    with pytest.raises(ValueError, match="NaN"):
        canonical({"a": math.nan})
    with pytest.raises(TypeError):
        canonical({"a": b"x"})


def plain_text() -> st.SearchStrategy[str]:
    return st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain_text()


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text(), inner, max_size=4),
    max_leaves=20,
)


OBJECTS = st.dictionaries(plain_text(), VALUES, max_size=5)


@given(OBJECTS)
def test_it_reads_any_object_as_it_is(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value), schema=None) == value
    assert parse(json.dumps(value, ensure_ascii=False, indent=1), schema=None) == value
    assert parse(json.dumps(json.dumps(value)), schema=None) == value
    assert parse(value, schema=None) == value


@given(OBJECTS)
def test_its_canonical_text_is_stable(value: dict[str, Any]) -> None:
    text = canonical(value)
    assert canonical(json.loads(text)) == text
    assert canonical(parse(text, schema=None)) == text
    assert canonical(dict(reversed(value.items()))) == text


@given(OBJECTS)
def test_it_reads_an_object_in_a_fence_with_trailing_commas(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1)
    if value:
        text = text[: text.rindex("\n")] + ",\n}"
    assert parse(f"```json\n{text}\n```", schema=None) == value


@given(st.text(alphabet=st.sampled_from('{}[]",:\\ \n1ae.-`tru\0\ud800'), max_size=30))
def test_it_gives_an_object_or_an_error_for_any_text(text: str) -> None:
    try:
        read = parse(text, schema=None)
    except ArgumentsError:
        return
    assert isinstance(read, dict)
    assert not read or "{" in text
    canonical(read).encode("utf-8")
