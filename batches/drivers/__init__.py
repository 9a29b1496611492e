"""What differs between the vendors' batches beyond their providers' verbs. A provider without a driver has none
and its members go as live runs.

Adding one is a module with a function that returns a Driver and a line in ``TABLE``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agents import providers
from batches.drivers.anthropic import driver as anthropic
from batches.drivers.base import Driver
from batches.drivers.openai import driver as openai

TABLE: Mapping[str, Callable[[], Driver]] = {"anthropic": anthropic, "openai": openai}


def driver_of(provider: str) -> Driver | None:
    """The driver of a provider's batches, None when its members go as live runs."""
    if provider not in TABLE or providers.batch_provider(provider) is None:
        return None
    return TABLE[provider]()
