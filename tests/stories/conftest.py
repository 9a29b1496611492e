"""The server as its clients see it: a real process, real HTTP, the scripted model in the vendors' place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client


@pytest.fixture
def api(server: ServerProcess, provider: ScriptedProvider) -> Iterator[Client]:
    """A client of the shared server, with a model that answers as the test scripts it."""
    with Client(server.url, provider) as client:
        yield client


@pytest.fixture(scope="session")
def token(server: ServerProcess) -> str:
    """A token of the shared server's administrator: sockets want one in every mode."""
    return server.manage("create_token", "admin")
