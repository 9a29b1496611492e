"""Whatever a stored history looks like, the request made of it is one that the strictest vendor takes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.context import HistoryMessage, chat_messages
from agents.context.chat import BEGINS, GO_ON
from agents.context.clean import IMAGE_LEFT_OUT
from agents.context.pairing import INTERRUPTED
from agents.providers.base import (
    CallPart,
    ImagePart,
    ReasoningPart,
    RedactedReasoningPart,
    ResultPart,
    TextPart,
)
from tests.agents.histories import CASES, MESSAGES, call, case, check, image, result, said, texts, thought


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.json")))
def test_it_makes_every_recorded_history_valid(name: str) -> None:
    check(chat_messages(case(name)))


def test_it_leaves_out_thinking_without_a_signature() -> None:
    made = chat_messages(case("h05_thinking_no_signature.json"))
    assert made[1].parts == (TextPart("a"),)


def test_it_sends_signed_and_redacted_thinking_back_unchanged() -> None:
    made = chat_messages(case("h07_redacted_thinking_tools.json"))
    assert made[1].parts[0] == RedactedReasoningPart("b3BhcXVl")
    assert isinstance(made[1].parts[1], CallPart)
    assert len(made[1].parts) == 2
    signed = chat_messages([said("user", "q"), said("assistant", thought(" as it was \n"), "a"), said("user", "n")])
    assert signed[1].parts[0] == ReasoningPart(" as it was \n", "c2lnbmVk", "anthropic")


def test_it_drops_thinking_that_cleaning_would_change() -> None:
    made = chat_messages([said("user", "q"), said("assistant", thought("a\0b"), "text"), said("user", "n")])
    assert made[1].parts == (TextPart("text"),)


def test_it_drops_blank_texts_and_keeps_calls() -> None:
    made = chat_messages(case("h09_empty_and_blank.json"))
    assert made[0].parts == (TextPart(BEGINS),)
    assert [type(part) for part in made[1].parts] == [CallPart]
    assert made[2].parts == (ResultPart("c1", ()), TextPart("real"))


def test_it_takes_a_text_that_shows_nothing_for_blank() -> None:
    made = chat_messages([said("user", "q", "\u200b\ufeff\u200d \0"), said("assistant", "\u2060"), said("user", "n")])
    assert made[0].parts == (TextPart("q"), TextPart("n"))


def test_it_begins_with_the_user() -> None:
    made = chat_messages(case("h12_assistant_first.json"))
    assert [(message.role, texts([message])) for message in made] == [
        ("user", [BEGINS]), ("assistant", ["welcome"]), ("user", ["hi"]),
    ]  # fmt: skip


def test_it_closes_calls_that_nobody_answered() -> None:
    made = chat_messages(case("h14_half_answered_approval.json"))
    assert made[2].parts == (
        ResultPart("g1", (TextPart(INTERRUPTED),), is_error=True),
        ResultPart("g2", (TextPart(INTERRUPTED),), is_error=True),
        TextPart("hello?"),
    )


def test_it_cleans_texts() -> None:
    (text,) = texts(chat_messages(case("h15_unicode_zoo.json")))
    assert "\0" not in text
    assert text.endswith("\ufffd end")
    assert "\U0001f468\u200d\U0001f469\u200d\U0001f467" in text


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ('{"a": 1}', '{"a": 1}'), ('{"path": "a', "{}"), ("", "{}"), ("[1]", "{}"), ("null", "{}"), (None, "{}"),
        ('{"a": NaN}', "{}"), ('{"a": 1e999}', "{}"), ("[" * 100_000, "{}"), ('{"a":' * 100_000, "{}"),
        ('{"a": "\\ud83d\\u0000"}', '{"a": "\\ufffd"}'), ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}'),
        ({"a": 1}, "{}"),
    ],
)  # fmt: skip
def test_it_sends_arguments_as_an_object(stored: Any, sent: str) -> None:
    made = chat_messages([said("assistant", call("c1", arguments=stored)), said("tool", result("c1"))])
    assert made[1].parts == (CallPart("c1", "look", sent),)


def test_it_puts_results_behind_their_call_in_the_order_of_the_calls() -> None:
    history = [
        said("user", "go"),
        said("assistant", call("a"), call("b"), call("c")),
        said("tool", result("c", "C")),
        said("user", "still there?"),
        said("tool", result("b", "B"), result("a", "A")),
        said("assistant", "done"),
        said("user", "thanks"),
    ]
    made = chat_messages(history)
    check(made)
    assert texts(made) == ["go", "A", "B", "C", "still there?", "done", "thanks"]


def test_it_drops_results_without_a_call() -> None:
    history = [said("tool", result("x", "early")), said("user", "q"), said("assistant", call("x")), said("user", "n")]
    assert texts(chat_messages(history)) == ["q", INTERRUPTED, "n"]
    assert texts(chat_messages([said("user", "q"), said("tool", result("never"))])) == ["q"]


def test_it_takes_one_result_for_each_call() -> None:
    history = [said("user", "q"), said("assistant", call("x")), said("tool", result("x", "1"), result("x", "2"))]
    assert texts(chat_messages(history)) == ["q", "1"]


def test_it_makes_repeated_ids_unique_and_keeps_them_paired() -> None:
    history = [
        said("user", "go"),
        said("assistant", call("x"), call("x"), call("")),
        said("tool", result("x", "1"), result("x", "2"), result("", "3")),
        said("assistant", call("x"), call("x_2")),
        said("tool", result("x_2", "5"), result("x", "4")),
    ]
    made = chat_messages(history)
    check(made)
    assert texts(made) == ["go", "1", "2", "3", "4", "5"]


def test_it_gives_the_same_ids_when_the_history_grows() -> None:
    history = [said("user", "go")]
    before: list[Any] = []
    for number in range(5):
        history += [said("assistant", call("x"), call("x")), said("tool", result("x", f"{number}"), result("x"))]
        made = chat_messages(history)
        assert list(made[: len(before)]) == before
        before = list(made)


def test_it_merges_neighbours_of_one_role() -> None:
    history = [said("user", "a"), said("user", "b"), said("assistant", "c"), said("assistant", thought(), "d")]
    made = chat_messages([*history, said("user", "e")])
    check(made)
    assert made[0].parts == (TextPart("a"), TextPart("b"))
    # The merged answer begins with its reasoning: an answer that calls tools must.
    assert made[1].parts == (ReasoningPart("hm", "c2lnbmVk", "anthropic"), TextPart("c"), TextPart("d"))


def test_it_keeps_the_order_of_an_answer_that_paused() -> None:
    history = [said("user", "a"), said("assistant", thought("1"), "b"), said("assistant", thought("2"), "c", call("x"))]
    parts = chat_messages(history)[1].parts
    assert [getattr(part, "text", "call") for part in parts] == ["1", "b", "2", "c", "call"]


@pytest.mark.parametrize(
    ("last", "end"),
    [((thought(),), "q"), ((thought(), "\n"), "q"), (("text", thought()), GO_ON), (("text  \n",), GO_ON)],
)
def test_it_never_ends_with_the_assistant(last: tuple[Any, ...], end: str) -> None:
    made = chat_messages([said("user", "q"), said("assistant", *last)])
    check(made)
    assert texts(made)[-1] == end


def test_it_drops_answers_of_nothing_but_reasoning() -> None:
    made = chat_messages([said("user", "q"), said("assistant", thought()), said("user", "n")])
    assert [message.parts for message in made] == [(TextPart("q"), TextPart("n"))]


def test_it_leaves_out_what_is_aborted_or_out_of_context() -> None:
    history = [
        said("system", "prompt"),
        said("user", "long ago", context=0),
        said("user", "q"),
        said("assistant", "half", call("x"), mark="aborted"),
        said("tool", result("x", "orphan")),
        said("assistant", "cut", mark="cancelled"),
        said("user", "n", context=2),
    ]
    made = chat_messages(history)
    check(made)
    assert texts(made) == ["q", "cut", "n"]


def test_it_tells_the_summary_first_wherever_its_row_stands() -> None:
    made = chat_messages([said("system", "p"), said("user", "kept"), said("summary", "they {met}"), said("user", "n")])
    check(made)
    summary, kept, following = texts(made)
    assert "they {met}" in summary
    assert summary.startswith("<conversation_summary>")
    assert (kept, following) == ("kept", "n")


def test_it_tells_later_system_messages_as_notes() -> None:
    made = chat_messages([said("system", "prompt"), said("user", "q"), said("assistant", "a"), said("system", "rule")])
    assert texts(made) == ["q", "a", "<system_note>\nrule\n</system_note>"]


def test_it_keeps_a_note_that_comes_first_after_compaction() -> None:
    made = chat_messages([said("system", "prompt"), said("system", "rule"), said("user", "q"), said("summary", "old")])
    assert texts(made)[1:] == ["<system_note>\nrule\n</system_note>", "q"]


def test_it_gives_decisions_no_words() -> None:
    decision = {"type": "decision", "sent": {"type": "approval", "tool_call_id": "x", "approve": True}}
    history = [said("user", "q"), said("assistant", call("x")), said("approval", decision), said("tool", result("x"))]
    assert texts(chat_messages(history)) == ["q", "found"]


def test_it_sends_images_where_they_may_be() -> None:
    content = [{"type": "text", "text": "see"}, image()]
    history = [
        said("user", "q", image(), image(media_type="image/tiff"), {"type": "image", "url": "http://plain/"}),
        said("assistant", image(), call("a"), call("b")),
        said("tool", result("a", content=content), result("b", content=content, status="error")),
    ]
    made = chat_messages(history)
    check(made)
    picture = ImagePart(media_type="image/png", data="iVBORw0KGgoAAAAA")
    assert made[0].parts == (TextPart("q"), picture, TextPart(IMAGE_LEFT_OUT), TextPart(IMAGE_LEFT_OUT))
    assert made[2].parts == (
        ResultPart("a", (TextPart("see"), picture)),
        ResultPart("b", (TextPart("see"),), is_error=True),
        picture,
    )


def test_it_reads_data_urls() -> None:
    made = chat_messages([said("user", {"type": "image", "url": "data:image/PNG;base64,iVBORw0KGgoAAAAA"})])
    assert made[0].parts == (ImagePart(media_type="image/png", data="iVBORw0KGgoAAAAA"),)


def test_it_gives_an_error_without_words_a_text() -> None:
    made = chat_messages([said("assistant", call("a")), said("tool", result("a", " ", status="error"))])
    check(made)


def test_it_makes_something_of_nothing() -> None:
    check(chat_messages([]))
    check(chat_messages([said("system", "prompt")]))


@settings(max_examples=400, deadline=None)
@given(st.lists(MESSAGES, max_size=12))
def test_it_makes_any_history_valid(history: list[HistoryMessage]) -> None:
    before = json.dumps([list(message.parts) for message in history])
    check(chat_messages(history))
    assert json.dumps([list(message.parts) for message in history]) == before


def test_it_takes_time_in_proportion_to_the_history() -> None:
    def seconds(turns: int) -> float:
        history = [
            message
            for number in range(turns)
            for message in (
                said("user", f"question {number} " * 20),
                said("assistant", thought(), "I look.", call("same", arguments='{"query": "what is it", "limit": 3}')),
                said("tool", result("same", "answer " * 50)),
                said("assistant", "It is this. " * 20),
            )
        ]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            chat_messages(history)
            best = min(best, time.process_time() - start)
        return best / len(history)

    assert seconds(2_000) < 4 * seconds(200) + 1e-6
