"""What every test may use: a real server process, interpreters with the client SDKs, pools that end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lettaweb.lib.db import close_pools
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess, start_server

ROOT = Path(__file__).resolve().parent.parent
pytest_plugins = ["tests.scripted.fixtures"]

MakeServer = Callable[..., ServerProcess]


@pytest.fixture(autouse=True)
def _like_a_browser_on_this_machine(settings: Any) -> None:
    """Django's test client calls itself ``testserver``: open mode takes it for a loopback name here."""
    settings.LETTAWEB_OPEN_HOSTS = [*settings.LETTAWEB_OPEN_HOSTS, "testserver"]


@pytest.fixture(autouse=True)
def _pools_end() -> Iterator[None]:
    """Threads of one test must not hold connections to the database that the next one rebuilds."""
    yield
    close_pools()


@pytest.fixture(scope="session")
def server(make_server: MakeServer) -> ServerProcess:
    """A running server, shared by the session: open mode, the scripted provider, its own data directory."""
    return make_server()


@pytest.fixture(scope="session")
def make_server(tmp_path_factory: pytest.TempPathFactory, scripted_server: ScriptedProvider) -> Iterator[MakeServer]:
    """``make_server(command="serve"|"web", data_dir=…, **environment)`` starts one more, ended with the session.

    It talks to the scripted provider unless ``environment`` says otherwise.
    """
    running: list[ServerProcess] = []

    def make(*, command: str = "serve", data_dir: Path | None = None, **environment: str) -> ServerProcess:
        directory = data_dir or tmp_path_factory.mktemp("server")
        variables = {**scripted_server.environment, **environment}
        made = start_server(directory, command=command, environment=variables)
        running.append(made)
        return made

    yield make
    for process in running:
        process.stop()


@pytest.fixture(scope="session")
def letta0_python() -> Path:
    """An interpreter that has letta-client 0.1.324."""
    return _client_python("letta0")


@pytest.fixture(scope="session")
def letta1_python() -> Path:
    """An interpreter that has letta-client 1.12.1."""
    return _client_python("letta1")


def _client_python(name: str) -> Path:
    path = ROOT / ".clients" / name / "bin" / "python"
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{path} is missing; `make clients` makes it")
        pytest.skip(f"{path} is missing; `make clients` makes it")
    return path
