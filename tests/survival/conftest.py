"""Servers that tests may kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client
from tests.survival.kit import LEASE, Faults, World

MakeServer = Callable[..., ServerProcess]


def mortal(
    make_server: MakeServer, directory: Path, *, data_dir: Path | None = None, **environment: str
) -> ServerProcess:
    """A web process with fault points. Its tools are plain processes: they leave marks on the disk."""
    variables = {"LETTAWEB_LEASE_SECONDS": LEASE, "LETTAWEB_SANDBOX_UNSAFE": "1", "LETTAWEB_DEBUG": "1"}
    variables |= {"LETTAWEB_FAULTS": str(directory), "LETTAWEB_DRAIN_SECONDS": "3"}
    return make_server(command="web", data_dir=data_dir, **{**variables, **environment})


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    return Faults(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def mortal_server(make_server: MakeServer, faults: Faults) -> Iterator[ServerProcess]:
    """A web process alone; each test leaves it running."""
    server = mortal(make_server, faults.directory)
    yield server
    server.stop()


@pytest.fixture
def world(mortal_server: ServerProcess, faults: Faults, provider: ScriptedProvider) -> World:
    made = World(mortal_server, faults, provider)
    if not mortal_server.healthy():
        made.revive()
    faults.clear()
    return made


@pytest.fixture
def api(world: World) -> Iterator[Client]:
    with world.client() as client:
        yield client
