"""Batches in this process: the scripted provider in the vendors' place, a poll when the test says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import providers
from tests.batches.desk import Desk
from tests.scripted.server import ScriptedProvider
from tools import sandbox


@pytest.fixture
def desk(transactional_db: None, provider: ScriptedProvider, settings: Any, tmp_path: Path) -> Desk:
    """What a test does with batches; the provider ends one only when the test says so."""
    for name, value in provider.environment.items():
        setattr(settings, name, value)
    settings.LETTAWEB_DATA_DIR = tmp_path
    settings.LETTAWEB_PROVIDER_RETRIES = 0
    settings.LETTAWEB_PROVIDER_BACKOFF = 0.01
    provider.settings.batch_polls = None
    providers.forget()
    from agents.policies.groups import ensure_groups

    ensure_groups()
    return Desk(provider)


@pytest.fixture(scope="session", autouse=True)
def _sandbox_ends() -> Iterator[None]:
    yield
    sandbox.stop()
