"""Which models a list shows."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from django.http import QueryDict

from agents import providers
from agents.providers import ListedModel
from lettaweb.lib.bodies import words


def models_of(query: QueryDict) -> list[ListedModel]:
    """The models of all configured providers, or of those that ``provider_name`` or ``provider_type`` name."""
    if set(words(query, "provider_category")) - {"base"}:
        return []  # keys are the installation's: nobody brings their own
    wanted = {*words(query, "provider_name"), *words(query, "provider_type")}
    # On the server's own event loop, where the vendors' clients live; from the cache but once an hour.
    found = async_to_sync(providers.all_models)()
    return [model for model in found if not wanted or model.provider in wanted]
