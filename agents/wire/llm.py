"""An agent's model configuration as the wire writes it: llm_config and model_settings say the same.

``Agent.llm_config`` is the one truth. It holds what was chosen and nothing else: a key that is missing
(temperature, enable_reasoner, …) was never set, and the wire shows its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

DEFAULTS: Mapping[str, Any] = {
    "model": "",
    "display_name": None,
    "model_endpoint_type": "openai",
    "model_endpoint": None,
    "provider_name": None,
    "provider_category": "base",
    "model_wrapper": None,
    "context_window": 128_000,
    "put_inner_thoughts_in_kwargs": False,
    "handle": None,
    "temperature": 1.0,
    "max_tokens": None,
    "enable_reasoner": True,
    "reasoning_effort": None,
    "max_reasoning_tokens": 0,
    "effort": None,
    "frequency_penalty": None,
    "compatibility_type": None,
    "verbosity": None,
    "tier": None,
    "parallel_tool_calls": False,
    "response_format": None,
    "strict": False,
    "return_logprobs": False,
    "top_logprobs": None,
    "return_token_ids": False,
    "tool_call_parser": None,
}
REASONING_BUDGET = 1024
OPENAI = "openai"
KINDS = ("anthropic", OPENAI)
"""Kinds of providers that clients know and that ours have; others are shown as the second."""


def kind_of(provider: str) -> str:
    """The kind that clients are told: their models of an answer take no other words."""
    return provider if provider in KINDS else OPENAI


def llm_config_state(stored: Mapping[str, Any]) -> Json:
    """``Agent.llm_config`` with every field; keys that nobody knows are kept."""
    shown = {**DEFAULTS, **stored}
    shown["model_endpoint_type"] = kind_of(shown["model_endpoint_type"])
    if "max_reasoning_tokens" not in stored and shown["model_endpoint_type"] == "anthropic":
        shown["max_reasoning_tokens"] = REASONING_BUDGET if shown["enable_reasoner"] else 0
    return shown


def model_settings_state(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """The model_settings that say what ``stored`` (llm_config) says; ``sent`` adds keys that nobody knows."""
    config = llm_config_state(stored)
    provider = kind_of(config["provider_name"])
    settings = {
        **sent,
        "max_output_tokens": config["max_tokens"] or 4096,
        "parallel_tool_calls": bool(config["parallel_tool_calls"]),
        "provider_type": provider,
        "temperature": config["temperature"],
        "response_format": config["response_format"],
        "strict": config["strict"],
    }
    if provider == "anthropic":
        return {**settings, "thinking": _thinking(config), "verbosity": config["verbosity"], "effort": config["effort"]}
    return {**settings, "reasoning": {"reasoning_effort": config["reasoning_effort"] or "minimal"}}


def config_of_settings(settings: Mapping[str, Any]) -> Json:
    """What model_settings say, in the words of llm_config."""
    said = {name: settings[name] for name in _SAME if settings.get(name) is not None}
    if settings.get("max_output_tokens") is not None:
        said["max_tokens"] = settings["max_output_tokens"]
    thinking = settings.get("thinking")
    if isinstance(thinking, Mapping):
        said["enable_reasoner"] = thinking.get("type", "enabled") != "disabled"
        if thinking.get("budget_tokens") is not None:
            said["max_reasoning_tokens"] = thinking["budget_tokens"]
    reasoning = settings.get("reasoning")
    if isinstance(reasoning, Mapping) and reasoning.get("reasoning_effort") is not None:
        said["reasoning_effort"] = reasoning["reasoning_effort"]
    return said


_SAME = (
    "temperature",
    "parallel_tool_calls",
    "response_format",
    "verbosity",
    "effort",
    "strict",
    "tool_call_parser",
)


def _thinking(config: Mapping[str, Any]) -> Json:
    budget = config["max_reasoning_tokens"] or REASONING_BUDGET
    return {"type": "enabled" if config["enable_reasoner"] else "disabled", "budget_tokens": budget}


def embedding_config_of(handle: str, chunk_size: int | None = None) -> Json:
    """An embedding_config that echoes a handle. Nothing is ever embedded, so nothing is checked."""
    provider, _, name = handle.partition("/")
    return {
        "embedding_endpoint_type": provider if provider in _EMBEDDERS else OPENAI,
        "embedding_endpoint": None,
        "embedding_model": name or provider,
        "embedding_dim": _DIMENSIONS.get(name or provider, 1536),
        "embedding_chunk_size": chunk_size or 300,
        "handle": handle,
        "batch_size": 32,
        "azure_endpoint": None,
        "azure_version": None,
        "azure_deployment": None,
    }


_DIMENSIONS = {"text-embedding-3-large": 3072}
_EMBEDDERS = frozenset(
    {
        *("anthropic", "azure", "bedrock", "google_ai", "google_vertex", "groq", "hugging-face", "lmstudio"),
        *("mistral", "ollama", "together", "vllm"),
    }
)
