"""Databases of servers under test: copies of one that was migrated once, dropped at the end."""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

DEFAULT = "postgres://lettaweb:lettaweb@127.0.0.1:5432/lettaweb"


def server_url() -> str:
    """The database that may make others: TEST_DATABASE_URL, the one that is tested, or the one of the CI script."""
    return os.environ.get("TEST_DATABASE_URL") or (chosen() or DEFAULT)


def chosen() -> str:
    """The PostgreSQL that DATABASE_URL asks to test with, "" for none."""
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith("postgres") else ""


def reachable() -> bool:
    try:
        psycopg.connect(server_url(), connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def create(template: str = "template1") -> str:
    """The URL of a new database: empty, or a copy of the one named ``template``."""
    name = f"lettaweb_test_{secrets.token_hex(6)}"
    say(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return urlunsplit(urlsplit(server_url())._replace(path=f"/{name}"))


class Migrated:
    """Databases with every table and no row of anybody's. To migrate takes seconds, to copy takes none."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.urls: list[str] = []

    def at(self, url: str) -> bool:
        """Whether ``url`` is one of ours."""
        return url in self.urls

    def file(self, path: Path) -> None:
        """Make the SQLite database ``path``."""
        shutil.copyfile(self._file, path)

    def database(self) -> str:
        """The URL of a new PostgreSQL database."""
        self.urls.append(create(self._database))
        return self.urls[-1]

    def drop(self) -> None:
        for url in self.urls:
            drop(url)

    @functools.cached_property
    def _file(self) -> Path:
        path = self.place / "migrated.sqlite3"
        _migrate(f"sqlite:///{path}")
        return path

    @functools.cached_property
    def _database(self) -> str:
        self.urls.insert(0, create())
        _migrate(self.urls[0])
        return urlsplit(self.urls[0]).path[1:]


def _migrate(url: str) -> None:
    from tests.servers import ROOT, base, clean_environment

    with tempfile.TemporaryDirectory() as directory:
        variables = {**clean_environment(), **base(Path(directory)), "DATABASE_URL": url}
        command = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def drop(url: str) -> None:
    say(f'DROP DATABASE IF EXISTS "{urlsplit(url).path[1:]}" WITH (FORCE)')


def cut(url: str) -> int:
    """End every connection to a database, as its restart would; how many there were."""
    name = urlsplit(url).path[1:]
    return len(say(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"))


def connections(url: str) -> int:
    name = urlsplit(url).path[1:]
    return len(say(f"SELECT 1 FROM pg_stat_activity WHERE datname = '{name}'"))


def say(sql: str) -> list[tuple[object, ...]]:
    # Not in the named database: somebody may be ending its connections.
    url = urlunsplit(urlsplit(server_url())._replace(path="/postgres"))
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []
