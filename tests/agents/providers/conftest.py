"""The providers pointed at the scripted vendors; quick retries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from agents import providers
from tests.scripted.server import ScriptedProvider


@pytest_asyncio.fixture
async def vendors(provider: ScriptedProvider, settings: Any) -> AsyncIterator[ScriptedProvider]:
    """The scripted server, with Django's settings pointing at it; clients and what was learned are dropped after."""
    for name, value in provider.environment.items():
        setattr(settings, name, value)
    settings.LETTAWEB_PROVIDER_RETRIES = 2
    settings.LETTAWEB_PROVIDER_BACKOFF = 0.01
    settings.LETTAWEB_DEMO_DELAY_MS = 0
    providers.forget()
    yield provider
    await providers.close_all()
    providers.forget()
