"""What is folded into a summary: whole turns, never across what waits, never between a call and its result."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.context import (
    CompactionSettings,
    HistoryMessage,
    chat_messages,
    compaction_settings,
    estimate_tokens,
    foldable,
    needs_compaction,
    plan_cut,
)
from agents.context.pairing import INTERRUPTED
from agents.memory.boot import heartbeat_text
from tests.agents.histories import MESSAGES, call, check, result, said, texts

WINDOW, RESERVE = 100_000, 2_000
SUMMARY = said("summary", "what was")


def turn(number: int, calls: int = 3) -> list[HistoryMessage]:
    ids = [f"{number}-{place}" for place in range(calls)]
    return [
        said("user", f"question {number} " * 10),
        said("assistant", "I look.", *map(call, ids)),
        said("tool", *(result(one, "found " * 20) for one in reversed(ids))),
        said("assistant", "It is so. " * 10),
    ]


def turns(count: int) -> list[HistoryMessage]:
    return [said("system", "prompt"), *(message for number in range(count) for message in turn(number))]


def after_cut(history: list[HistoryMessage], cut: int) -> list[HistoryMessage]:
    return [history[0], SUMMARY, *foldable(history)[cut:]]


@pytest.mark.parametrize("length", range(2, 82))
@pytest.mark.parametrize("keep", [0.7, 0.3, 0.0])
@pytest.mark.parametrize("steps", [False, True])
def test_it_cuts_between_turns_at_every_length(length: int, keep: float, steps: bool) -> None:
    history = turns(20)[:length]
    cut = plan_cut(history, window=WINDOW, reserve=RESERVE, keep_fraction=keep, steps=steps)
    body = foldable(history)
    if cut is None:
        assert len(body) <= 4
        return
    kept = body[cut:]
    if kept:
        assert kept[0].role == "user" or (steps and kept[0].role == "assistant")
    messages = chat_messages(after_cut(history, cut))
    check(messages)
    open_end = len(body) % 4 == 2  # the last answer's calls have no results yet
    assert (INTERRUPTED in texts(messages)) == open_end


def test_it_keeps_the_share_that_was_asked_for() -> None:
    history = turns(100)
    total = sum(estimate_tokens(message.parts) for message in foldable(history))
    for keep in (0.9, 0.7, 0.3):
        cut = plan_cut(history, window=WINDOW, reserve=RESERVE, keep_fraction=keep)
        assert cut is not None
        left = sum(estimate_tokens(message.parts) for message in foldable(history)[cut:])
        assert keep * total - 300 <= left <= keep * total


def test_it_fits_the_rest_into_a_small_window() -> None:
    history = turns(100)
    cut = plan_cut(history, window=5_000, reserve=1_000)
    assert cut is not None
    assert sum(estimate_tokens(message.parts) for message in foldable(history)[cut:]) <= 2_800


def test_it_uses_stored_estimates() -> None:
    history = [said("system", "p"), said("user", "a", tokens=900), said("assistant", "b", tokens=1)]
    history += [said("user", "c", tokens=10), said("assistant", "d", tokens=10)] * 2
    assert plan_cut(history, window=WINDOW, reserve=0) == 2


def test_it_folds_a_finished_history_whole_when_nothing_shall_stay() -> None:
    history = turns(3)
    assert plan_cut(history, window=WINDOW, reserve=0, keep_fraction=0) == 12
    assert plan_cut([*history, said("user", "next")], window=WINDOW, reserve=0, keep_fraction=0) == 12
    assert plan_cut(history[:-1], window=WINDOW, reserve=0, keep_fraction=0) == 8


def test_it_never_folds_a_pending_set_or_its_turn() -> None:
    history = [*turns(2), said("user", "pay"), said("assistant", call("p1"), call("p2"))]
    pending = ["p2"]
    for keep in (0.7, 0.0):
        cut = plan_cut(history, window=10, reserve=0, keep_fraction=keep, pending_ids=pending)
        assert cut == 8
    waiting = [said("user", "pay"), said("assistant", call("p1"))]
    for steps in (False, True):
        assert plan_cut(waiting, window=1, reserve=0, keep_fraction=0, pending_ids=["p1"], steps=steps) is None


def test_it_waits_for_a_result_that_comes_turns_later() -> None:
    history = [*turn(0), said("user", "do"), said("assistant", call("late")), said("user", "well?")]
    history += [said("tool", result("late")), said("assistant", "done"), said("user", "next")]
    assert plan_cut(history, window=1, reserve=0) == 9
    assert plan_cut(history[:-1], window=1, reserve=0) == 4


def test_it_tells_repeated_call_ids_apart() -> None:
    history = [message for _ in range(5) for message in turn(0)]
    assert plan_cut(history, window=1, reserve=0) == 16


def test_it_never_parts_a_message_from_the_one_it_belongs_to() -> None:
    history = [*turn(0), said("system", "note", context=2), said("user", "a"), said("assistant", "b")]
    cut = plan_cut(history, window=1, reserve=0)
    assert cut == 4
    attached = [*turn(0)[:-1], said("assistant", "x", context=2), said("user", "a"), said("assistant", "b")]
    assert plan_cut(attached, window=1, reserve=0) is None


def test_it_keeps_the_messages_of_one_request_together() -> None:
    history = [*turn(0), said("user", "first"), said("user", "second"), said("assistant", "b")]
    assert plan_cut(history, window=1, reserve=0) == 4


def test_it_finds_no_cut_inside_one_turn_unless_steps_may_be_parted() -> None:
    steps = [
        message
        for number in range(20)
        for message in (said("assistant", call(f"{number}")), said("tool", result(f"{number}", "x" * 1000)))
    ]
    history = [said("system", "p"), said("user", "work"), *steps]
    assert plan_cut(history, window=3_000, reserve=0) is None
    cut = plan_cut(history, window=3_000, reserve=0, steps=True)
    assert cut is not None
    check(chat_messages(after_cut(history, cut)))
    assert foldable(history)[cut].role == "assistant"


def test_it_takes_a_heartbeat_for_the_middle_of_a_turn() -> None:
    beat = heartbeat_text("You asked to act again.", now=datetime(2026, 3, 1, tzinfo=UTC), timezone="UTC")
    history = [said("user", "do"), said("assistant", call("a")), said("tool", result("a")), said("user", beat)]
    history += [said("assistant", call("b")), said("tool", result("b"))]
    assert plan_cut(history, window=1, reserve=0) is None
    assert plan_cut(history, window=1, reserve=0, steps=True) == 3
    assert plan_cut([*history, said("user", "next")], window=1, reserve=0) == 6


def test_it_does_not_count_the_summary_before() -> None:
    history = [said("system", "p"), SUMMARY, *turn(0), *turn(1), said("user", "next")]
    assert plan_cut(history, window=1, reserve=0) == 8


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGES, max_size=14), st.booleans(), st.sampled_from([0.0, 0.5, 0.7]))
def test_it_never_loses_a_result_by_a_cut(history: list[HistoryMessage], steps: bool, keep: float) -> None:
    cut = plan_cut(history, window=10, reserve=0, keep_fraction=keep, steps=steps)
    body = foldable(history)
    assert cut is None or 0 < cut <= len(body)
    if cut is not None:
        before = texts(chat_messages(body))
        parts = [texts(chat_messages(body[:cut])), texts(chat_messages(body[cut:]))]
        assert before.count(INTERRUPTED) == sum(part.count(INTERRUPTED) for part in parts)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (None, CompactionSettings()),
        ({}, CompactionSettings()),
        ({"mode": "all"}, CompactionSettings(keep_fraction=0.0)),
        ({"mode": "self_compact_all", "sliding_window_percentage": 0.3}, CompactionSettings(keep_fraction=0.0)),
        ({"mode": "sliding_window", "sliding_window_percentage": 0.4}, CompactionSettings(keep_fraction=0.6)),
        ({"sliding_window_percentage": "much"}, CompactionSettings()),
        ({"sliding_window_percentage": 7}, CompactionSettings()),
        ({"clip_chars": None, "model": "a/x", "prompt": "Short."}, CompactionSettings(0.7, "a/x", "Short.", 0)),
    ],
)  # fmt: skip
def test_it_reads_an_agents_settings(stored: dict[str, object] | None, expected: CompactionSettings) -> None:
    assert compaction_settings(stored) == expected


@pytest.mark.parametrize(
    ("used", "reported", "expected"),
    [(89_999, 0, False), (90_000, 0, True), (120_000, 0, True), (10, 95_000, True), (10, 0, False)],
)
def test_it_compacts_by_its_own_estimate_when_no_usage_is_reported(used: int, reported: int, expected: bool) -> None:
    assert needs_compaction(used, 100_000, reported=reported) is expected


def test_it_never_compacts_for_an_unknown_window() -> None:
    assert not needs_compaction(1_000_000, 0)
