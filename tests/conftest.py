"""What every test may use: a real server process, interpreters with the client SDKs, pools that end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
import redis
from django.db import connection

from agents.policies import known
from lettaweb.lib.db import close_pools
from tests import databases
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess, start_server

ROOT = Path(__file__).resolve().parent.parent
pytest_plugins = ["tests.scripted.fixtures"]

MakeServer = Callable[..., ServerProcess]


@pytest.fixture(autouse=True)
def _like_a_browser_on_this_machine(settings: Any) -> None:
    """Django's test client calls itself ``testserver``: open mode takes it for a loopback name here."""
    settings.LETTAWEB_OPEN_HOSTS = [*settings.LETTAWEB_OPEN_HOSTS, "testserver"]
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # a real one takes a third of a second


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A test database of this run alone: several runs at once must not delete each other's."""
    test = connection.settings_dict["TEST"]
    if connection.vendor == "sqlite":
        test["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
        options = connection.settings_dict["OPTIONS"]
        options["init_command"] = options["init_command"].replace("synchronous=NORMAL", "synchronous=OFF")
    else:
        test["NAME"] = f"test_lettaweb_{os.getpid()}"


@pytest.fixture(autouse=True)
def _pools_end() -> Iterator[None]:
    """Nothing of one test lives on in the next: threads with connections, callers that are remembered."""
    known.forget()
    yield
    close_pools()


@pytest.fixture(scope="session")
def server(make_server: MakeServer) -> ServerProcess:
    """A running server, shared by the session: open mode, the scripted provider, its own data directory."""
    return make_server()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[databases.Migrated]:
    made = databases.Migrated(tmp_path_factory.mktemp("migrated"))
    yield made
    made.drop()


@pytest.fixture(scope="session")
def make_server(
    tmp_path_factory: pytest.TempPathFactory, scripted_server: ScriptedProvider, migrated: databases.Migrated
) -> Iterator[MakeServer]:
    """``make_server(command="serve"|"web", data_dir=…, **environment)`` starts one more, ended with the session.

    It talks to the scripted provider unless ``environment`` says otherwise. With DATABASE_URL (PostgreSQL) and
    REDIS_URL set, every data directory has a database of its own there. The tables are there already; ``serve``
    in a directory that the test has made begins with what it finds.
    """
    running: list[ServerProcess] = []
    chosen: dict[Path, str] = {}

    def make(
        *, command: str = "serve", data_dir: Path | None = None, program: Sequence[str] = (), **environment: str
    ) -> ServerProcess:
        directory = data_dir or tmp_path_factory.mktemp("server")
        if databases.chosen() and directory not in chosen:
            chosen[directory] = migrated.database()
        variables = {**scripted_server.environment, **_scaled_out(chosen.get(directory)), **environment}
        url, file = variables.get("DATABASE_URL", ""), directory / "lettaweb.sqlite3"
        on_file = not url.startswith("postgres")
        if on_file and not file.exists() and (data_dir is None or command == "web"):
            migrated.file(file)
        ready = file.exists() if on_file else migrated.at(url)
        made = start_server(directory, command=command, environment=variables, migrate=not ready, program=program)
        running.append(made)
        return made

    yield make
    for process in running:
        process.stop()


def _scaled_out(database: str | None) -> dict[str, str]:
    redis_at = os.environ.get("REDIS_URL")
    return ({"DATABASE_URL": database} if database else {}) | ({"REDIS_URL": redis_at} if redis_at else {})


@pytest.fixture(scope="session")
def make_database(migrated: databases.Migrated) -> Callable[[], str]:
    """``make_database()`` is the URL of a new PostgreSQL database with all tables, dropped with the session."""
    if not databases.reachable():
        _missing(f"no PostgreSQL at {databases.server_url()}; .ci/run starts one")
    return migrated.database


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A Redis that tests may use."""
    url = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
    try:
        redis.Redis.from_url(url).ping()
    except redis.RedisError:
        _missing(f"no Redis at {url}; .ci/run starts one")
    return url


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
        _missing(f"{path} is missing; `make clients` makes it")
    return path


def _missing(reason: str) -> NoReturn:
    """Skip with ``reason``; where everything must be there, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
