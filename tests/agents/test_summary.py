"""The call that writes a summary offers nothing to call, fits its window, and only words count as its answer."""

from __future__ import annotations

import pytest

from agents.context import CompactionSettings, estimate_tokens, summary_request, summary_text
from agents.context.summary import PROMPT
from agents.providers.base import CallPart, ModelResponse, Part, ReasoningPart, TextPart
from tests.agents.histories import call, check, image, result, said, thought

HISTORY = [
    said("user", "Refund order 7781.", image()),
    said("assistant", thought("secret"), "I ask first.", call("c1", "refund", '{"order": 7781}')),
    said("approval", {"type": "decision", "sent": {"approve": False, "reason": "too much"}}),
    said("tool", result("c1", "denied", status="error")),
    said("assistant", "half an", mark="aborted"),
    said("assistant", "It was denied."),
]


def the_text(request_parts: tuple[Part, ...]) -> str:
    (part,) = request_parts
    assert isinstance(part, TextPart)
    return part.text


def test_it_offers_no_tools_and_tells_what_happened() -> None:
    request = summary_request(HISTORY, "earlier: hello", model="m", window=100_000)
    assert request.tools == ()
    assert request.tool_choice.kind == "none"
    assert request.reasoning is False
    check(request.messages)
    text = the_text(request.messages[0].parts)
    for told in ("Refund order 7781.", "calls refund", '{"order": 7781}', "denies: too much", "failed: denied",
                 "It was denied.", "earlier: hello", PROMPT):  # fmt: skip
        assert told in text
    assert "secret" not in text
    assert "half an" not in text


def test_it_asks_in_the_agents_own_words() -> None:
    request = summary_request(HISTORY, model="m", window=100_000, settings=CompactionSettings(prompt="One line."))
    text = the_text(request.messages[0].parts)
    assert "One line." in text
    assert PROMPT not in text


@pytest.mark.parametrize("letters", ["lorem ", "语言模型", "\U0001f600"])
@pytest.mark.parametrize("count", [3, 300])
def test_it_fits_the_window(letters: str, count: int) -> None:
    history = [said("user", letters * 20_000), said("tool", result("c", letters * 50_000))] * count
    request = summary_request(history, model="m", window=30_000)
    assert 1_000 < estimate_tokens(request) + request.max_tokens <= 30_000


@pytest.mark.parametrize(
    ("parts", "stop", "expected"),
    [
        ((TextPart(" They met. "),), "end_turn", "They met."),
        ((TextPart("They met."), CallPart("c", "look", "{}")), "tool_use", "They met."),
        ((TextPart("They"),), "max_tokens", "They"),
        ((), "end_turn", None),
        ((TextPart(""), TextPart(" \n\u200b")), "end_turn", None),
        ((CallPart("c", "look", "{}"),), "tool_use", None),
        ((ReasoningPart("I think they met."),), "end_turn", None),
        ((TextPart("I cannot."),), "refusal", None),
    ],
)
def test_it_takes_only_words_for_a_summary(parts: tuple[Part, ...], stop: str, expected: str | None) -> None:
    assert summary_text(ModelResponse(parts, stop)) == expected  # type: ignore[arg-type]


def test_it_clips_a_long_summary() -> None:
    assert summary_text(ModelResponse((TextPart("x" * 100),), "end_turn"), clip_chars=10) == "x" * 9 + "…"
