"""From a stored history through a provider's wire form to the scripted vendors, who refuse what the real ones do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.context import HistoryMessage, chat_messages
from agents.providers.anthropic import traits as anthropic_traits
from agents.providers.anthropic import wire as anthropic_wire
from agents.providers.base import ModelRequest, ToolSpec
from agents.providers.openai import traits as openai_traits
from agents.providers.openai import wire as openai_wire
from tests.agents.histories import CASES, MESSAGES, case
from tests.scripted import anthropic_params, openai_params
from tests.scripted.checks import has_lone_surrogate
from tests.scripted.signing import redact, sign

TOO_LONG = "h10_very_long_message.json"
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),)


def ask_anthropic(request: ModelRequest) -> None:
    body = anthropic_wire.to_wire(request, anthropic_traits.by_name(request.model))
    anthropic_params.check_request(_sent(body), anthropic_params.Rules())


def ask_openai(request: ModelRequest) -> None:
    body = openai_wire.to_wire(request, openai_traits.by_name(request.model))
    openai_params.check_request(_sent(body))


def _sent(body: Any) -> Any:
    text = json.dumps(body, allow_nan=False)
    assert not has_lone_surrogate(json.loads(text))
    return json.loads(text)


VENDORS: list[tuple[str, Callable[[ModelRequest], None]]] = [
    ("claude-sonnet-4-5-20250929", ask_anthropic),
    ("claude-opus-4-7", ask_anthropic),
    ("gpt-4o", ask_openai),
    ("deepseek-reasoner", ask_openai),
]


def signed(history: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    """The history with signatures that the scripted vendor knows as its own, where there were any."""
    return [replace(message, parts=[_signed(part) for part in message.parts]) for message in history]


def _signed(part: Any) -> Any:
    if part.get("type") == "reasoning" and part.get("signature"):
        return {**part, "signature": sign(part.get("text") or ""), "provider": "anthropic"}
    if part.get("type") == "redacted" and part.get("data"):
        return {**part, "data": redact(), "provider": "anthropic"}
    return part


@pytest.mark.parametrize(("model", "ask"), VENDORS)
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.json") if path.name != TOO_LONG))
@pytest.mark.parametrize("tools", [TOOLS, ()], ids=["tools", "no tools"])
def test_it_passes_the_strict_vendor(
    model: str, ask: Callable[[ModelRequest], None], name: str, tools: tuple[ToolSpec, ...]
) -> None:
    messages = chat_messages(signed(case(name)))
    ask(ModelRequest(model, "You help.", messages, tools=tools, max_tokens=4096))


@pytest.mark.parametrize(("model", "ask"), VENDORS)
@settings(max_examples=150, deadline=None)
@given(history=st.lists(MESSAGES, max_size=10))
def test_it_passes_the_strict_vendor_with_any_history(
    model: str, ask: Callable[[ModelRequest], None], history: list[HistoryMessage]
) -> None:
    ask(ModelRequest(model, "You help.", chat_messages(signed(history)), tools=TOOLS, max_tokens=4096))
