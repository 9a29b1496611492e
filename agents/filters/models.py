"""Which models a list shows."""

from __future__ import annotations

from django.http import QueryDict

from agents import providers
from agents.providers.base import ModelInfo
from lettaweb.lib.bodies import words


def models_of(query: QueryDict) -> list[tuple[str, ModelInfo]]:
    """(provider, model) of all providers, or of those that ``provider_name`` or ``provider_type`` name."""
    wanted = {*words(query, "provider_name"), *words(query, "provider_type")}
    if set(words(query, "provider_category")) - {"base"}:
        return []  # keys are the installation's: nobody brings their own
    return [(provider, info) for provider, info in providers.all_models() if not wanted or provider in wanted]
