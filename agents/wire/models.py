"""Models on offer as the wire writes them: one object that is a Model to one SDK and an LlmConfig to the other."""

from __future__ import annotations

from typing import Any

from agents.providers.base import ModelInfo
from agents.wire.llm import DEFAULTS, embedding_config_of, kind_of

Wire = dict[str, Any]

EMBEDDINGS = ("openai/text-embedding-3-small", "openai/text-embedding-3-large", "openai/text-embedding-ada-002")
"""Handles that clients look for. Nothing is embedded: they are stored with an agent and echoed."""


def model_state(provider: str, info: ModelInfo) -> Wire:
    return {
        **DEFAULTS,
        "handle": f"{provider}/{info.name}",
        "name": info.name,
        "display_name": info.display_name or info.name,
        "provider_type": kind_of(provider),
        "provider_name": provider,
        "model_type": "llm",
        "model": info.name,
        "model_endpoint_type": kind_of(provider),
        "context_window": info.context_window,
        "max_context_window": info.context_window,
        "max_tokens": info.max_output,
        "enable_reasoner": info.reasoning,
    }


def embedding_state(handle: str) -> Wire:
    provider, _, name = handle.partition("/")
    return {
        **embedding_config_of(handle),
        "handle": handle,
        "name": name,
        "display_name": name,
        "provider_type": provider,
        "provider_name": provider,
        "model_type": "embedding",
    }


def provider_state(name: str, configured: bool) -> Wire:
    """A provider as the settings have it; its key stays there."""
    return {
        "id": None,
        "name": name,
        "provider_type": kind_of(name),
        "provider_category": "base",
        "configured": configured,
        "api_key": None,
        "base_url": None,
        "access_key": None,
        "region": None,
        "api_version": None,
        "organization_id": None,
        "updated_at": None,
        "last_synced": None,
    }
