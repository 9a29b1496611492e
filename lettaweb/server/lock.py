"""One server per data directory, one migration per database."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import CommandError, call_command
from django.db import connection

_MIGRATION_KEY = 0x6C657474  # "lett"


@contextmanager
def only_server(directory: Path) -> Iterator[None]:
    """Hold ``serve.lock``; a CommandError when another server holds it. A killed holder frees it."""
    descriptor = os.open(directory / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            raise CommandError(f"Another server (process {holder}) already uses {directory}.") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def migrate(directory: Path, *, verbosity: int = 0) -> None:
    """Bring the database up to date; several servers at once take turns."""
    with _turn(directory):
        call_command("migrate", interactive=False, verbosity=verbosity)


@contextmanager
def _turn(directory: Path) -> Iterator[None]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_KEY])
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_MIGRATION_KEY])
        return
    with open(directory / "migrate.lock", "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
