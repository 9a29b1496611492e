"""The demo model: works offline by a few rules and says so; calls the tools it is asked to call, quotes results."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from django.conf import settings

from agents.providers.base import (
    Answer,
    CallDelta,
    CallPart,
    CallStart,
    Delta,
    ModelInfo,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    ReasoningPart,
    TextDelta,
    TextPart,
)
from agents.providers.demo.turn import answer

MODELS = (ModelInfo("demo", "Demo (offline, rule-based)", 200_000, 8192, reasoning=True),)
WORD = re.compile(r"\s*\S+\s*|\s+")
PIECE = 16  # characters of arguments in a delta


class Demo:
    """The provider ``demo``; needs no settings and no network."""

    name = "demo"

    def configured(self) -> bool:
        return True

    def stream(self, request: ModelRequest) -> Answer:
        return _streamed(answer(request))

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return answer(request)

    async def models(self) -> Sequence[ModelInfo]:
        return MODELS

    def describe(self, model: str) -> ModelInfo:
        return ModelInfo(model, model, 200_000, 8192, reasoning=True)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    def forget(self) -> None:
        """Nothing was learned."""

    def warm(self) -> None:
        """Nothing to import."""

    async def close(self) -> None:
        """Nothing to close."""


async def _streamed(response: ModelResponse) -> Answer:
    delay = float(getattr(settings, "LETTAWEB_DEMO_DELAY_MS", 15)) / 1000
    for delta in deltas(response):
        if delay > 0:
            await asyncio.sleep(delay)
        yield [delta]
    yield response


def deltas(response: ModelResponse) -> Iterator[Delta]:
    """The response in small pieces: words of text, short cuts of arguments."""
    number = 0
    for part in response.parts:
        if isinstance(part, CallPart):
            yield CallStart(number, part.id, part.name)
            for at in range(0, len(part.arguments), PIECE):
                yield CallDelta(number, part.arguments[at : at + PIECE])
            number += 1
        elif isinstance(part, ReasoningPart):
            yield from (ReasoningDelta(word) for word in WORD.findall(part.text))
        elif isinstance(part, TextPart):
            yield from (TextDelta(word) for word in WORD.findall(part.text))
