"""The catalogue: which models there are and what each can do, read off the name where it is not listed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Reasoning = Literal["none", "budget", "adaptive"]


@dataclass(frozen=True, slots=True)
class AnthropicModel:
    """What a Claude model takes. ``window`` and ``max_output`` in tokens."""

    id: str
    reasoning: Reasoning
    window: int
    max_output: int
    version: tuple[int, int]

    @property
    def prefill(self) -> bool:
        return self.version < (4, 6)

    @property
    def thinking_shown(self) -> bool:
        """Whether thinking is shown when the request does not say how to display it."""
        return self.version < (4, 7)


ANTHROPIC_LISTED = {
    "claude-opus-5-5": "2026-10-21", "claude-sonnet-5-5": "2026-10-20", "claude-haiku-5-5": "2026-10-19",
    "claude-opus-4-8": "2026-06-10", "claude-opus-4-7": "2026-04-16", "claude-opus-4-6": "2026-02-04",
    "claude-sonnet-4-6": "2026-02-17",
    "claude-haiku-4-5-20251001": "2025-10-15", "claude-opus-4-5-20251101": "2025-11-24",
    "claude-sonnet-4-5-20250929": "2025-09-29", "claude-opus-4-1-20250805": "2025-08-05",
    "claude-opus-4-20250514": "2025-05-22", "claude-sonnet-4-20250514": "2025-05-22",
    "claude-3-7-sonnet-20250219": "2025-02-24", "claude-3-5-sonnet-20241022": "2024-10-22",
    "claude-3-5-haiku-20241022": "2024-10-22", "claude-3-opus-20240229": "2024-02-29",
}  # fmt: skip
OPENAI_LISTED = {
    "gpt-5": 1754425777, "gpt-5-mini": 1754425928, "gpt-4.1": 1744316542, "gpt-4.1-mini": 1744318173,
    "gpt-4o": 1715367049, "gpt-4o-mini": 1721172741, "o3": 1744225308, "o4-mini": 1744225351,
    "deepseek-reasoner": 1737331200, "text-embedding-3-small": 1705948997,
}  # fmt: skip
NEWEST = (99, 0)


def anthropic_version(name: str) -> tuple[int, int]:
    """(4, 5) of claude-sonnet-4-5-20250929 and (3, 5) of claude-3-5-haiku-20241022; an unknown form is the newest."""
    numbers = [int(part) for part in name.split("-") if re.fullmatch(r"\d{1,2}", part)]
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) if numbers else NEWEST


def anthropic_model(name: str) -> AnthropicModel | None:
    """The model of this name, listed or not; None for a name that is no Claude model's."""
    if not name.startswith("claude-"):
        return None
    version = anthropic_version(name)
    reasoning: Reasoning = "adaptive" if version >= (4, 6) else "budget" if version >= (3, 7) else "none"
    max_output = 128_000 if version >= (4, 6) else 64_000 if version >= (3, 7) else 8_192
    return AnthropicModel(name, reasoning, 1_000_000 if version >= (4, 6) else 200_000, max_output, version)


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """What a chat model takes. ``compatible``: not OpenAI's own, shows its reasoning as reasoning_content."""

    id: str
    reasoning: bool
    compatible: bool
    window: int


def openai_model(name: str) -> OpenAIModel | None:
    """The model of this name, listed or not; None for a name that no such server has."""
    reasoning = re.match(r"(o\d|gpt-[5-9])", name) is not None
    if reasoning or re.match(r"(gpt-|chatgpt-)", name):
        return OpenAIModel(name, reasoning, False, 400_000 if reasoning else 128_000)
    if re.match(r"(deepseek|llama|qwen|mistral|local)", name):
        return OpenAIModel(name, "reason" in name, True, 64_000)
    return None
