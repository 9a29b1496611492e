"""PostgreSQL databases for tests: made empty, dropped at the end."""

from __future__ import annotations

import os
import secrets
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


def create() -> str:
    """The URL of a new, empty database."""
    name = f"lettaweb_test_{secrets.token_hex(6)}"
    say(f'CREATE DATABASE "{name}"')
    return urlunsplit(urlsplit(server_url())._replace(path=f"/{name}"))


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
