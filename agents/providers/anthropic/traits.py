"""What a Claude model takes: by the vendor's list, else by the version in its name, else by what it refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.providers.base import ModelInfo, ProviderError
from agents.providers.images import Images, fewer_images
from agents.providers.lines import count_of, mapping_of, text_of

Thinking = Literal["none", "budget", "adaptive"]
Off = Literal["omit", "disabled", "between_tools", "always_on"]

VERSION = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
HISTORY = re.compile(r"messages\.\d|signature|thinking.? blocks?|redacted_thinking|must start with a thinking")
MAX_TOKENS = re.compile(r"max_tokens: \d+ > (\d+)")

BUILT_IN = (
    ModelInfo("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, 128_000, reasoning=True),
    ModelInfo("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000, 128_000, reasoning=True),
    ModelInfo("claude-sonnet-4-6", "Claude Sonnet 4.6", 1_000_000, 128_000, reasoning=True),
    ModelInfo("claude-opus-4-5-20251101", "Claude Opus 4.5", 200_000, 64_000, reasoning=True),
    ModelInfo("claude-sonnet-4-5-20250929", "Claude Sonnet 4.5", 200_000, 64_000, reasoning=True),
    ModelInfo("claude-haiku-4-5-20251001", "Claude Haiku 4.5", 200_000, 64_000, reasoning=True),
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What may go into a request.

    off         how thinking is turned off
    forced      whether a tool choice may be forced
    replay      whether stored thinking may go back
    binding     whether stored thinking has to stand where it was thought
    max_output  tokens, 0 when unknown
    refused     the forms of thinking that the model did not take
    images      which images may go along
    """

    thinking: Thinking = "adaptive"
    off: Off = "omit"
    forced: bool = True
    sampling: bool = False
    effort: bool = True
    replay: bool = True
    binding: bool = False
    max_output: int = 0
    refused: frozenset[str] = frozenset()
    images: Images = "all"


def by_name(model: str) -> Traits:
    """The traits of a model that is on no list; a name without a version gets the newest form."""
    found = VERSION.search(model)
    if not found:
        return Traits()
    family, version = found[1] or "", (int(found[2]), int(found[3] or 0))
    if version < (3, 7):
        return Traits(thinking="none", sampling=True, effort=False)
    if version < (4, 6):
        return Traits(thinking="budget", sampling=True, effort=False)
    if version < (5, 0):
        return Traits()
    binding = version >= (5, 1)
    late = (version >= (5, 5) and family != "haiku") or family in ("fable", "mythos")
    if not late:
        return Traits(off="disabled", binding=binding)
    return Traits(off="between_tools" if family == "sonnet" else "always_on", forced=False, binding=binding)


def by_list(model: str, entry: Mapping[str, Any]) -> Traits:
    """The traits of a model as the vendor lists it; what the list does not say is taken from the name."""
    named = by_name(model)
    thinking = mapping_of(mapping_of(entry.get("capabilities")).get("thinking"))
    types = mapping_of(thinking.get("types"))
    if not thinking:
        return replace(named, max_output=count_of(entry.get("max_tokens")))
    form: Thinking = "adaptive" if _has(types, "adaptive") else "budget" if _has(types, "enabled") else "none"
    if not types:
        form = named.thinking if thinking.get("supported") else "none"
    off = named.off
    if types and off != "omit" and not _has(types, off):
        off = next((way for way in OFF_WAYS if _has(types, way)), "always_on")
    return replace(named, thinking=form, off=off, max_output=count_of(entry.get("max_tokens")))


OFF_WAYS: tuple[Off, ...] = ("disabled", "between_tools")


def _has(types: Mapping[str, Any], name: str) -> bool:
    return mapping_of(types.get(name)).get("supported") is True


def info(entry: Mapping[str, Any]) -> ModelInfo:
    """A model of the vendor's list."""
    name = text_of(entry.get("id"))
    traits = by_list(name, entry)
    return ModelInfo(
        name,
        text_of(entry.get("display_name")) or name,
        count_of(entry.get("max_input_tokens")) or 200_000,
        traits.max_output or 8192,
        reasoning=traits.thinking != "none",
    )


def adapted(traits: Traits, error: ProviderError, wire: Mapping[str, Any]) -> Traits | None:
    """The traits that a refusal of ``wire`` teaches, None when it is about something else."""
    if error.status not in (400, 422):
        return None
    said = error.message
    if images := fewer_images(traits.images, said, wire):
        return replace(traits, images=images)
    if "block_binding" in said and traits.binding:
        return replace(traits, binding=False)
    if "tool_choice" in said:
        return _without_force(traits, said)
    if limit := MAX_TOKENS.search(said):
        return replace(traits, max_output=int(limit[1]))
    if ("temperature" in said or "top_p" in said) and "temperature" in wire:
        return replace(traits, sampling=False)
    if "effort" in said and "thinking" not in said and "output_config" in wire:
        return replace(traits, effort=False)
    return _thinking_otherwise(traits, said, text_of(mapping_of(wire.get("thinking")).get("type")))


def _thinking_otherwise(traits: Traits, said: str, sent: str) -> Traits | None:
    """What to do where the refusal is about stored thinking, or about the form of thinking that was sent."""
    if ("thinking" in said or "signature" in said) and HISTORY.search(said):
        return replace(traits, replay=False) if traits.replay else None
    return _other_form(traits, sent) if "thinking" in said else None


def _without_force(traits: Traits, said: str) -> Traits | None:
    if "thinking" in said.lower() and traits.off == "omit":
        return replace(traits, off="disabled")
    return replace(traits, forced=False) if traits.forced else None


def _other_form(traits: Traits, sent: str) -> Traits:
    """Other than the form that was sent: of thinking, or of turning it off."""
    if sent in FORMS:
        refused = traits.refused | {FORMS[sent]}
        form: Thinking = next((form for form in FORMS.values() if form not in refused), "none")
        return replace(traits, thinking=form, refused=refused)
    if sent == "disabled":
        return replace(traits, off="between_tools")
    return replace(traits, off="disabled" if traits.off == "omit" else "always_on")


FORMS: Mapping[str, Thinking] = {"adaptive": "adaptive", "enabled": "budget"}
