"""Pytest fixtures: one scripted provider for the session, reset for every test that asks for it.

A conftest takes them with ``from tests.scripted.fixtures import provider, scripted_server``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scripted.server import ScriptedProvider


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[ScriptedProvider]:
    """The running server; tests use ``provider``."""
    server = ScriptedProvider().start()
    yield server
    server.stop()


@pytest.fixture
def provider(scripted_server: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    """The server as good as new, with the SDKs' variables pointing at it."""
    scripted_server.reset()
    for name, value in scripted_server.environment.items():
        monkeypatch.setenv(name, value)
    yield scripted_server
    scripted_server.reset()
