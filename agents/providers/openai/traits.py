"""What a chat model takes: by its name, else by what it or its server refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.providers.base import ModelInfo, ProviderError
from agents.providers.images import Images, fewer_images
from agents.providers.lines import count_of, text_of

REASONING = re.compile(r"^(o\d|gpt-[5-9])(?!.*chat)")
NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcri|sora|babbage|davinci|instruct|rerank|search-api"
)
WINDOWS = (("gpt-4.1", 1_047_576), ("gpt-5", 400_000), ("o", 200_000), ("gpt-3.5", 16_385), ("gpt-4-0", 8_192))
OPTIONAL = ("stream_options", "parallel_tool_calls", "reasoning_effort", "temperature")
SCHEMA = re.compile(r"invalid_function_parameters|invalid schema|strict|additionalProperties", re.IGNORECASE)

BUILT_IN = (
    ModelInfo("gpt-5", "GPT-5", 400_000, 128_000, reasoning=True),
    ModelInfo("gpt-5-mini", "GPT-5 mini", 400_000, 128_000, reasoning=True),
    ModelInfo("gpt-4.1", "GPT-4.1", 1_047_576, 32_768),
    ModelInfo("gpt-4.1-mini", "GPT-4.1 mini", 1_047_576, 32_768),
    ModelInfo("gpt-4o-mini", "GPT-4o mini", 128_000, 16_384),
    ModelInfo("o4-mini", "o4-mini", 200_000, 100_000, reasoning=True),
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What may go into a request. ``limit`` names the field of the answer's bound; ``left_out`` are the optional
    fields that were refused; ``echo``: stored reasoning goes back, as some servers want within a tool loop;
    ``images`` says which images may go along.
    """

    reasoning: bool = False
    limit: str = "max_tokens"
    strict: bool = True
    forced: bool = True
    echo: bool = False
    left_out: frozenset[str] = frozenset()
    images: Images = "all"


def plain_name(model: str) -> str:
    """The name without the prefixes of a router or of a fine-tuning: gpt-5 of openai/gpt-5."""
    return model.rpartition("/")[2].removeprefix("ft:")


def by_name(model: str) -> Traits:
    """The traits of a model of which nothing else is known."""
    if not REASONING.search(plain_name(model)):
        return Traits()
    return Traits(reasoning=True, limit="max_completion_tokens", left_out=frozenset({"temperature"}))


def info(entry: Mapping[str, Any]) -> ModelInfo | None:
    """A model of the vendor's list, None for no chat model. Each compatible server tells its window its own way."""
    name = text_of(entry.get("id"))
    if not name or NO_CHAT.search(name):
        return None
    plain = plain_name(name)
    told = [count_of(entry.get(field)) for field in ("context_window", "max_model_len", "context_length")]
    window = next(filter(None, told), 0) or next((size for start, size in WINDOWS if plain.startswith(start)), 128_000)
    traits = by_name(name)
    output = count_of(entry.get("max_completion_tokens")) or (32_768 if traits.reasoning else 16_384)
    return ModelInfo(name, name, window, min(output, window), reasoning=traits.reasoning)


def adapted(traits: Traits, error: ProviderError, wire: Mapping[str, Any]) -> Traits | None:
    """The traits that a refusal of ``wire`` teaches, None when it is about something else."""
    if error.status not in (400, 422) or error.kind != "bad_request":
        return None
    said = error.message
    if images := fewer_images(traits.images, said, wire):
        return replace(traits, images=images)
    if traits.limit in said and (
        "max_completion_tokens" in said or re.search(r"unsupported|extra|unknown|permitted", said)
    ):
        return replace(traits, limit=_other_limit(traits.limit)) if _other_limit(traits.limit) not in wire else None
    for field in OPTIONAL:
        if field in said and field in wire:
            return replace(traits, left_out=traits.left_out | {field})
    if "reasoning_content" in said:
        return replace(traits, echo=not traits.echo)
    if "tool_choice" in said:
        return replace(traits, forced=False)
    if SCHEMA.search(said) and traits.strict:
        return replace(traits, strict=False)
    return None


def _other_limit(limit: str) -> str:
    return "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
