"""Results as text: for the API, for people, for the model."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tools.results import as_text, denial_text, error_text, for_model, truncate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("as it is ", "as it is "),
        ("", ""),
        ("a\0b\ud800", "ab\ufffd"),
        (True, "True"),
        (3, "3"),
        (1.5, "1.5"),
        (math.nan, "nan"),
        ({"n": 1, "ok": True, "none": None}, '{"n": 1, "ok": true, "none": null}'),
        ({"ü\0": ["x\ud800", math.inf]}, '{"ü": ["x\ufffd", null]}'),
        ([], "[]"),
        ([1, "a", {"b": (2,)}], '[1, "a", {"b": [2]}]'),
        (2**70, "1180591620717411303424"),
    ],
)
def test_it_shows_a_value(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_it_shows_something_for_values_that_have_no_text() -> None:
    deep: list[Any] = []
    deep.append(deep)
    assert as_text(deep) == "(a list that cannot be shown: nested too deeply)"
    assert as_text({"a": {1}}) == "(a dict that cannot be shown: a value of type set is not JSON)"
    assert as_text(10**5000).startswith("0x")
    assert len(as_text(10**4299)) == 4300


@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("12345", 5, "12345"),
        (
            "123456",
            5,
            "12345... [NOTE: function output was truncated since it exceeded the character limit (6 > 5)]",
        ),
        ("", 1, ""),
        (
            "😀" * 1200,
            1000,
            "😀" * 1000
            + "... [NOTE: function output was truncated since it exceeded the character limit (1200 > 1000)]",
        ),
    ],
)
def test_it_cuts_a_long_text_at_a_whole_character_and_says_so(text: str, limit: int, wanted: str) -> None:
    assert truncate(text, limit) == wanted
    truncate(text, limit).encode("utf-8")


def test_it_writes_errors_and_denials_as_clients_know_them() -> None:
    assert error_text("roll", "RuntimeError", "boom: x") == "Error executing function roll: RuntimeError: boom: x"
    assert len(error_text("roll", "RuntimeError", "x" * 5000)) == 1000
    assert error_text("roll", "E", "a\0\ud800") == "Error executing function roll: E: a\ufffd"
    assert denial_text("too dear") == "Error: request to call tool denied. User reason: too dear"
    assert denial_text(None) == "Error: request to call tool denied. User reason: None"


def test_it_clips_a_long_reason_of_a_denial_and_says_so() -> None:
    told = denial_text("r" * 5000)
    assert told.startswith("Error: request to call tool denied. User reason: " + "r" * 4000 + "... [NOTE: the reason")
    assert "(5000 > 4000)" in told


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (datetime(2026, 11, 30, 13, 47, 55, tzinfo=UTC), "2026-11-30 01:47:55 PM UTC+0000"),
        (datetime(2026, 1, 2, 0, 5, 9, 999, tzinfo=UTC), "2026-01-02 12:05:09 AM UTC+0000"),
        (datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC), "2026-01-02 12:00:00 PM UTC+0000"),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30), "NST")),
            "2026-01-02 03:04:05 AM NST-0330",
        ),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=45), "NPT")),
            "2026-01-02 03:04:05 AM NPT+0545",
        ),
    ],
)
def test_it_tells_the_model_when_it_was(now: datetime, shown: str) -> None:
    assert json.loads(for_model("x", True, now))["time"] == shown


def test_it_tells_the_model_in_the_form_that_the_letta_server_used() -> None:
    now = datetime(2026, 11, 30, 14, 27, 17, tzinfo=UTC)
    assert for_model("Grüße\0", False, now) == (
        '{\n  "status": "Failed",\n  "message": "Grüße",\n  "time": "2026-11-30 02:27:17 PM UTC+0000"\n}'
    )
    assert json.loads(for_model("1", True, now))["status"] == "OK"


def test_it_wants_a_time_with_a_zone() -> None:
    with pytest.raises(ValueError, match="zone"):
        for_model("x", True, datetime(2026, 1, 1))
