"""The model vendors. ``get``, ``for_handle`` and the list of models are all that the rest of the app needs.

Adding one is a module with a class that keeps the protocol in ``base`` and a line in ``TABLE``. Importing this
package imports no SDK; ``warm`` does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from agents.providers.anthropic import Anthropic
from agents.providers.anthropic.traits import BUILT_IN as ANTHROPIC_MODELS
from agents.providers.base import Answer as Answer
from agents.providers.base import BatchProvider, ModelInfo, Provider, ProviderError
from agents.providers.demo import MODELS as DEMO_MODELS
from agents.providers.demo import Demo
from agents.providers.openai import OpenAI
from agents.providers.openai.traits import BUILT_IN as OPENAI_MODELS

log = structlog.get_logger(__name__)

# provider, the models to show while its vendor has not answered
TABLE: tuple[tuple[Provider, Sequence[ModelInfo]], ...] = (
    (Anthropic(), ANTHROPIC_MODELS),
    (OpenAI(), OPENAI_MODELS),
    (Demo(), DEMO_MODELS),
)
FRESH = 3600.0  # seconds that a vendor's list holds
PATIENCE = 10.0  # seconds to wait for a vendor's list
RETRY = 60.0  # seconds before a vendor that did not answer is asked again


class UnknownProvider(KeyError):
    """No provider has this name."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that can be chosen."""

    provider: str
    info: ModelInfo

    @property
    def handle(self) -> str:
        return f"{self.provider}/{self.info.name}"


def names() -> tuple[str, ...]:
    """The names of all providers, configured or not."""
    return tuple(provider.name for provider, _ in TABLE)


def get(name: str) -> Provider:
    """The provider of this name. Raises UnknownProvider."""
    for provider, _ in TABLE:
        if provider.name == name:
            return provider
    raise UnknownProvider(name)


def for_handle(handle: str) -> tuple[Provider, str]:
    """The provider and the vendor's model name of ``provider/model``. Raises UnknownProvider and ValueError."""
    name, slash, model = handle.partition("/")
    if not (name and slash and model):
        raise ValueError(f"{handle!r} is no handle of the form provider/model")
    return get(name), model


def batch_provider(name: str) -> BatchProvider | None:
    """The provider of this name if its vendor has a batch API, else None. Raises UnknownProvider."""
    provider = get(name)
    return provider if isinstance(provider, Anthropic | OpenAI) else None


# --- models ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _List:
    """A vendor's list and until when (monotonic seconds) it holds."""

    models: Sequence[ModelInfo]
    until: float


_lists: dict[str, _List] = {}


async def all_models(*, refresh: bool = False) -> Sequence[ListedModel]:
    """The models of all configured providers, cached; a vendor that does not answer has the built-in ones."""
    rows = [(provider, built_in) for provider, built_in in TABLE if provider.configured()]
    await asyncio.gather(*(_refresh(provider, built_in, refresh=refresh) for provider, built_in in rows))
    return known_models()


def known_models() -> Sequence[ListedModel]:
    """The models of all configured providers as known by now; asks nobody."""
    rows = [(provider, built_in) for provider, built_in in TABLE if provider.configured()]
    return [ListedModel(provider.name, info) for provider, built_in in rows for info in _known(provider, built_in)]


def model_info(handle: str) -> ModelInfo:
    """What is known of a model, listed or not. Raises as ``for_handle``."""
    provider, model = for_handle(handle)
    built_in = next(models for row, models in TABLE if row is provider)
    found = next((info for info in _known(provider, built_in) if info.name == model), None)
    return found or next((info for info in built_in if info.name == model), None) or provider.describe(model)


def _known(provider: Provider, built_in: Sequence[ModelInfo]) -> Sequence[ModelInfo]:
    return _lists[provider.name].models if provider.name in _lists else built_in


async def _refresh(provider: Provider, built_in: Sequence[ModelInfo], *, refresh: bool) -> None:
    known = _lists.get(provider.name)
    if known and not refresh and time.monotonic() < known.until:
        return
    await asyncio.to_thread(provider.warm)  # an import is slow, but it is not the vendor who keeps us waiting
    try:
        async with asyncio.timeout(PATIENCE):
            models = await provider.models()
    except (ProviderError, TimeoutError) as error:
        log.warning("provider.models_unavailable", provider=provider.name, reason=str(error) or "timeout")
        _lists[provider.name] = _List(known.models if known else built_in, time.monotonic() + RETRY)
        return
    _lists[provider.name] = _List(models or built_in, time.monotonic() + FRESH)


def forget() -> None:
    """Drop the cached lists and what refusals taught, for when the settings changed."""
    _lists.clear()
    for provider, _ in TABLE:
        provider.forget()


# --- start and end --------------------------------------------------------------------------------


def warm() -> None:
    """Import the SDKs of the configured providers; takes seconds, for a thread after the start."""
    for provider, _ in TABLE:
        if provider.configured():
            provider.warm()


async def close_all() -> None:
    """Close the shared clients of the running event loop."""
    for provider, _ in TABLE:
        await provider.close()
