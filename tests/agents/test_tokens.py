"""The local guess at tokens, and how long results are shortened when the window is tight."""

from __future__ import annotations

import pytest

from agents.context import chat_messages, clip_results, estimate_tokens
from agents.providers.base import ChatMessage, ImagePart, ModelRequest, ResultPart, TextPart, ToolSpec
from tests.agents.histories import call, check, image, result, said, thought


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0), ("a", 1, 1), ("The quick brown fox jumps over the lazy dog. " * 100, 900, 1500),
        ("Größe überall möglich. " * 100, 600, 1200), ("Привет, как дела? " * 100, 500, 1400),
        ("语言模型很有用。" * 100, 600, 1200), ("\U0001f600" * 100, 100, 300), ("\ud83d", 1, 3),
    ],
)  # fmt: skip
def test_it_guesses_texts(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def test_it_counts_every_part_of_a_message() -> None:
    texts = estimate_tokens([{"type": "text", "text": "x" * 350}])
    assert texts == 104
    assert estimate_tokens([call("c", arguments='{"a": "' + "x" * 3500 + '"}')]) > 1000
    assert estimate_tokens([result("c", "x" * 3500)]) > 1000
    assert estimate_tokens([result("c", "", content=[image(), {"type": "text", "text": "x" * 3500}])]) > 2600
    assert estimate_tokens([thought("x" * 3500)]) > 1000
    assert estimate_tokens([thought("x" * 3500, "")]) < 10
    assert estimate_tokens([{"type": "decision", "sent": {"reason": "x" * 3500}}, {}]) < 10


def test_it_counts_a_request_like_its_messages() -> None:
    history = [said("user", "q" * 700), said("assistant", "a", call("c")), said("tool", result("c", "r" * 700))]
    request = ModelRequest("m", "s" * 700, chat_messages(history))
    stored = sum(estimate_tokens(message.parts) for message in history)
    assert abs(estimate_tokens(request) - stored - 200) < 10
    tool = ToolSpec("look", "d" * 700, {"type": "object", "properties": {"a": {"description": "p" * 700}}})
    offered = ModelRequest("m", "s" * 700, chat_messages(history), tools=(tool,))
    assert estimate_tokens(offered) - estimate_tokens(request) > 400


def long_results(size: int) -> tuple[ChatMessage, ...]:
    history = [said("user", "q")]
    for number in range(4):
        history += [said("assistant", call(f"c{number}")), said("tool", result(f"c{number}", f"{number}" * size))]
    return chat_messages(history)


def test_it_leaves_results_alone_while_there_is_room() -> None:
    messages = long_results(8_000)
    assert clip_results(messages, window=100_000) is messages
    assert clip_results(messages, window=0) is messages


def test_it_shortens_what_was_read_before_and_bounds_what_is_new() -> None:
    messages = long_results(40_000)
    clipped = clip_results(messages, window=30_000, reserve=5_000)
    check(clipped)
    old, new = clipped[2].parts[0], clipped[-1].parts[0]
    assert isinstance(old, ResultPart)
    assert isinstance(new, ResultPart)
    assert len(the_text(old)) < 5_100
    assert the_text(old).startswith("000")
    assert the_text(old).endswith("000")
    assert "35000 characters left out" in the_text(old)
    assert the_text(new) == "3" * 40_000
    assert estimate_tokens(ModelRequest("m", "", clipped)) < 25_000
    assert clip_results(messages, window=30_000, reserve=5_000) == clipped


def test_it_bounds_one_giant_result() -> None:
    clipped = clip_results(long_results(1_000_000), window=30_000, reserve=5_000)
    assert estimate_tokens(ModelRequest("m", "", clipped)) < 25_000


def test_it_keeps_images_of_a_long_result() -> None:
    content = [image(), {"type": "text", "text": "x" * 90_000}]
    history = [said("assistant", call("c")), said("tool", result("c", content=content)), said("assistant", "seen")]
    clipped = clip_results(chat_messages(history), window=10_000)
    (part,) = clipped[2].parts
    assert isinstance(part, ResultPart)
    assert isinstance(part.parts[0], ImagePart)


def the_text(part: ResultPart) -> str:
    (text,) = part.parts
    assert isinstance(text, TextPart)
    return text.text
