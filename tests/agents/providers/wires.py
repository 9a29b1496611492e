"""Wire forms that the strict vendors' rules have checked, and a history to begin with."""

from __future__ import annotations

from typing import Any

from agents.providers.anthropic import traits as claude
from agents.providers.anthropic.wire import to_wire as to_anthropic
from agents.providers.base import CallPart, ImagePart, ModelRequest, ReasoningPart, ResultPart, TextPart
from agents.providers.openai import traits as gpt
from agents.providers.openai.wire import to_wire as to_openai
from tests.agents.providers.asking import assistant, user
from tests.scripted.anthropic_params import Rules
from tests.scripted.anthropic_params import check_request as check_anthropic
from tests.scripted.openai_params import check_request as check_openai
from tests.scripted.signing import sign

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = ImagePart("image/png", PNG)
THOUGHT = ReasoningPart("hm", sign("hm"), "anthropic")
LOOP = (user("go"), assistant(THOUGHT, CallPart("t", "get_weather", "{}")), user(ResultPart("t", (TextPart("r"),))))


def anthropic_wire(made: ModelRequest, traits: claude.Traits | None = None) -> dict[str, Any]:
    """The wire form, checked by the strict vendor's rules."""
    wire = to_anthropic(made, traits or claude.by_name(made.model))
    check_anthropic(wire, Rules(sampling=True, beta="block_binding" in str(wire)))
    return wire


def openai_wire(made: ModelRequest, traits: gpt.Traits | None = None) -> dict[str, Any]:
    wire = to_openai(made, traits or gpt.by_name(made.model))
    check_openai(wire)
    return wire
