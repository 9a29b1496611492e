"""Database work from the event loop: threads, connections, the caller's context, the gate."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from lettaweb.lib import db
from lettaweb.lib.db import in_db, in_db_read
from tests.servers import ROOT, base, clean_environment

pytestmark = pytest.mark.django_db(transaction=True)
colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def connection_id() -> tuple[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return threading.current_thread().name, id(connection.connection)


async def test_it_keeps_one_connection_a_thread() -> None:
    seen = {await in_db(connection_id) for _ in range(8)}
    names = {name for name, _ in seen}
    assert len(seen) == len(names)
    assert all(name.startswith("db-") for name in names)


async def test_it_writes_in_one_thread_and_reads_beside_it() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has one pool for both")
    entered, leave = threading.Event(), threading.Event()

    def slow_write() -> None:
        with transaction.atomic():
            Group.objects.create(name="slow")
            entered.set()
            leave.wait(10)

    writing = asyncio.create_task(in_db(slow_write))
    await asyncio.to_thread(entered.wait, 10)
    assert await asyncio.wait_for(in_db_read(Group.objects.filter(name="slow").exists), 5) is False
    leave.set()
    await writing
    assert await in_db_read(Group.objects.filter(name="slow").exists) is True


async def test_it_sees_the_callers_context_and_leaks_nothing_back() -> None:
    def work() -> str:
        before = colour.get()
        colour.set("changed by work")
        return before

    colour.set("blue")
    assert [await in_db(work), await in_db(work)] == ["blue", "blue"]
    assert colour.get() == "blue"
    context = contextvars.Context()
    task = asyncio.get_running_loop().create_task(in_db(colour.get), context=context)
    assert await task == "none"


async def test_it_replaces_a_connection_that_was_lost() -> None:
    def lose() -> None:
        connection.ensure_connection()
        connection.connection.close()

    await in_db(Group.objects.count)
    await in_db(lose)
    failures = 0
    for _ in range(3):
        try:
            await in_db(Group.objects.count)
        except Exception:
            failures += 1
    assert failures <= 1


@pytest.mark.parametrize("pool", ["0", "8"])
def test_it_gets_over_a_database_that_was_restarted(
    make_database: Callable[[], str], tmp_path: Path, pool: str
) -> None:
    """In a process of its own on PostgreSQL: connections end while idle, then work comes."""
    url = make_database()
    script = """
import asyncio, django, sys
django.setup()
from django.contrib.auth.models import Group
from django.db import connections
from lettaweb.lib import db
from tests import databases

async def main():
    answers = []
    for _ in range(3):
        await asyncio.gather(*[db.in_db(Group.objects.count) for _ in range(8)])
        await asyncio.sleep(db.TRUSTED_SECONDS + 0.1)
        assert databases.cut(sys.argv[1]) > 0
        answers += await asyncio.gather(*[db.in_db(Group.objects.count) for _ in range(8)], return_exceptions=True)
    print("failed", sum(isinstance(answer, Exception) for answer in answers))
asyncio.run(main())
db.close_pools()
for alias in connections:
    if hasattr(connections[alias], "close_pool"):
        connections[alias].close_pool()
print("left", databases.connections(sys.argv[1]))
"""
    environment = {**clean_environment(), **base(tmp_path), "DATABASE_URL": url, "LETTAWEB_DB_POOL": pool,
                   "DJANGO_SETTINGS_MODULE": "lettaweb.settings", "PYTHONPATH": str(ROOT)}  # fmt: skip
    python = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(python, env=environment, check=True, timeout=120)
    done = subprocess.run(
        [sys.executable, "-c", script, url], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["failed", "0", "left", "0"], done.stderr


async def test_it_hands_on_the_error_and_rolls_back() -> None:
    def fail() -> None:
        with transaction.atomic():
            Group.objects.create(name="never")
            raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        await in_db(fail)
    assert not await in_db_read(Group.objects.filter(name="never").exists)


async def test_it_frees_the_gate_after_every_end() -> None:
    """A writer in this thread waits for the pool's writer, whatever became of that one's transaction."""

    def fail() -> None:
        with transaction.atomic():
            Group.objects.create(name="x")
            raise LookupError

    def autocommit() -> None:
        Group.objects.create(name="plain")
        Group.objects.filter(name="plain").update(name="plainer")
        Group.objects.filter(name="plainer").delete()

    for _ in range(3):
        with pytest.raises(LookupError):
            await in_db(fail)
        await in_db(autocommit)
        await asyncio.to_thread(write_elsewhere)


def write_elsewhere() -> None:
    try:
        with transaction.atomic():
            Group.objects.create(name="elsewhere")
            transaction.set_rollback(True)
    finally:
        connection.close()


def test_it_says_locked_instead_of_waiting_for_ever() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the gate is SQLite's")
    found: list[object] = []

    def write() -> None:
        try:
            connection.settings_dict["OPTIONS"] = {**connection.settings_dict["OPTIONS"], "timeout": 0.3}
            Group.objects.create(name="late")
        except OperationalError as error:
            found.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        Group.objects.create(name="early")
        started = time.monotonic()
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
    assert found, "the second writer should have given up"
    assert "locked" in str(found[0])
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("writer", [in_db, in_db_read])
async def test_it_works_at_once_in_inline_mode(writer: object) -> None:
    with db.inline():
        assert await in_db(threading.get_ident) == threading.get_ident()
