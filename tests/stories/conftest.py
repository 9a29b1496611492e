"""The server as its clients see it: a real process, real HTTP, the scripted model in the vendors' place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import databases
from tests.conftest import MakeServer
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client
from tests.survival.workers import start_worker


@pytest.fixture(scope="session")
def doors(server: ServerProcess, make_server: MakeServer) -> Iterator[list[str]]:
    """On PostgreSQL two web processes answer in turn, and a worker works beside them; else the shared server alone."""
    if not databases.chosen():
        yield []
        return
    second, worker = make_server(command="web", data_dir=server.data_dir), start_worker(server)
    yield [server.url, second.url]
    worker.terminate()


@pytest.fixture
def api(server: ServerProcess, doors: list[str], provider: ScriptedProvider) -> Iterator[Client]:
    """A client of the shared server, with a model that answers as the test scripts it."""
    with Client(server.url, provider, doors=doors) as client:
        yield client


@pytest.fixture(scope="session")
def token(server: ServerProcess) -> str:
    """A token of the shared server's administrator: sockets want one in every mode."""
    return server.manage("create_token", "admin")
