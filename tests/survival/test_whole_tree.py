"""``serve`` with its children: kills of one of them, of the supervisor, of all; and of a migration half way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.scripted.answers import answer, text
from tests.scripted.server import ScriptedProvider
from tests.servers import ROOT, ServerProcess, base, clean_environment
from tests.stories.client import Client, text_of
from tests.survival.kit import LEASE, WAIT, Follower, check_whole, follow, wait_until

pytestmark = pytest.mark.server
MakeServer = Callable[..., ServerProcess]
SAID = "A long story that begins at the beginning, goes on until it comes to the end, and then stops."


def web_process(server: ServerProcess) -> psutil.Process:
    return next(one for one in server.everybody() if one.cmdline()[-1:] == ["web"])


def said(follower: Follower) -> dict[str, str]:
    return text_of(follower.chunks)


def kill_web(server: ServerProcess) -> None:
    web_process(server).kill()


def kill_supervisor(server: ServerProcess) -> None:
    """Its children end by themselves; then somebody starts it again."""
    family = server.everybody()
    os.kill(server.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=40)
    assert alive == []
    server.start()


def kill_all(server: ServerProcess) -> None:
    server.kill()
    server.start()


def test_it_goes_on_whatever_is_killed(make_server: MakeServer, provider: ScriptedProvider) -> None:
    server = make_server(LETTAWEB_LEASE_SECONDS=LEASE)
    with Client(server.url, provider) as api:
        for number, kill in enumerate((kill_web, kill_supervisor, kill_all)):
            agent = api.agent()
            once = answer(text(SAID), hold=f"gate {number}", hold_at=8)
            provider.script(f"go {number}", once, answer(text(SAID)))
            follower = follow(api, agent, f"go {number}")
            provider.await_held(f"gate {number}", WAIT)
            wait_until(partial(said, follower), "some text")
            kill(server)
            follower.join()
            assert check_whole(api, agent, follower)["status"] == "completed"
            assert list(text_of(follower.chunks).values()) == [SAID]
    assert provider.refused == []
    assert server.terminate() == 0


MIGRATE = """
import os, signal, sys
sys.argv = ["manage.py", "migrate"]
os.environ["DJANGO_SETTINGS_MODULE"] = "lettaweb.settings"
import django
django.setup()
from django.core.management import call_command
from django.db import connection
left = int(os.environ["KILL_AFTER"])
def count(execute, sql, params, many, context):
    global left
    left -= sql.lstrip()[:6].upper() in ("CREATE", "ALTER ", "INSERT", "DROP T")
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(sql, params, many, context)
with connection.execute_wrapper(count):
    call_command("migrate", verbosity=0)
"""


def test_it_starts_after_a_migration_was_killed(make_server: MakeServer, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'lettaweb.sqlite3'}"
    variables = {**clean_environment(), **base(tmp_path), "DATABASE_URL": database}
    for after in (4, 25, 60, 90):
        given = {**variables, "KILL_AFTER": str(after)}
        done = subprocess.run([sys.executable, "-c", MIGRATE], env=given, cwd=ROOT, capture_output=True, timeout=120)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    server = make_server(data_dir=tmp_path, DATABASE_URL=database)
    assert server.get("/v1/agents/").status_code == 200
    assert server.terminate() == 0
    with sqlite3.connect(tmp_path / "lettaweb.sqlite3") as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
