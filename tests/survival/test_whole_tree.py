"""``serve`` with its children: kills of one of them, of the supervisor, of all; and of a migration half way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests import databases
from tests.scripted.answers import answer, text, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ROOT, ServerProcess, base, clean_environment
from tests.stories.client import Client, approve, text_of
from tests.survival.kit import (
    LEASE,
    MARK,
    WAIT,
    Faults,
    Follower,
    Scenario,
    World,
    check_whole,
    follow,
    marks,
    through_a_crash,
    wait_until,
)
from tests.survival.test_interrupted_tools import UNKNOWN, asked, returns, set_of_three
from tests.survival.test_takeover import SECOND, asked_again

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


def test_it_goes_on_whatever_is_killed(
    make_server: MakeServer, faults: Faults, provider: ScriptedProvider, tmp_path: Path
) -> None:
    given = {"LETTAWEB_LEASE_SECONDS": LEASE, "LETTAWEB_SANDBOX_UNSAFE": "1", "LETTAWEB_DEBUG": "1"}
    server = make_server(LETTAWEB_FAULTS=str(faults.directory), **given)
    with Client(server.url, provider) as api:
        for number, kill in enumerate((kill_web, kill_supervisor)):
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
        through_a_crash(
            World(server, faults, provider),
            asked_again(api, "the same", *SECOND["the same"]),
            asked_again(api, "something else", *SECOND["something else"]),
            unanswered(api),
            set_of_three(api, tmp_path),
            asked(api, tmp_path, "it happened"),
            undecided(api, tmp_path / "undecided"),
            ended_and_not_stored(api, faults, tmp_path / "ended"),  # last: from there on the web process stands still
        )
    assert provider.refused == []
    assert server.terminate() == 0


def unanswered(api: Client) -> Scenario:
    """The model was asked and had not said a word."""
    agent = api.agent()
    api.provider.script("[silent]", answer(text("late"), hold="silent"), answer(text(SAID)))
    follower = follow(api, agent, "go [silent]")
    api.provider.await_held("silent", WAIT)
    yield
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert list(text_of(follower.chunks).values()) == [SAID]


def undecided(api: Client, path: Path) -> Scenario:
    """A call waited for people: it waits on, and what they decide afterwards happens once."""
    tool = api.gated(MARK)
    agent = api.agent(tool)
    call = tool_use(tool["name"], {"path": str(path), "text": "one"})
    api.provider.script("[undecided]", answer(call), answer(text("done")))
    (call_id,) = api.send(agent, "go [undecided]").waiting
    before = api.runs(agent)
    yield
    assert api.runs(agent) == before
    assert [run["stop_reason"] for run in before] == ["requires_approval"]
    assert api.decide(agent, approve(call_id)).stop == "end_turn"
    assert marks(path) == ["one"]


def ended_and_not_stored(api: Client, faults: Faults, path: Path) -> Scenario:
    """A tool had done its work, and nobody had written that down."""
    tool = api.tool(MARK)
    agent = api.agent(tool)
    call = tool_use(tool["name"], {"path": str(path), "text": "one"})
    api.provider.script("[ended]", answer(call), answer(text("I do not know.")))
    faults.arm("acted", "wait")
    follower = follow(api, agent, "go [ended]")
    faults.await_hit("acted")
    yield
    follower.join()
    assert check_whole(api, agent, follower)["status"] == "completed"
    assert marks(path) == ["one"]
    ((status, told),) = returns(api, agent)
    assert (status, UNKNOWN in told) == ("error", True)


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


KILLS = (4, 60, 90)  # statements that a migration got to do


def test_it_starts_after_a_migration_was_killed(make_server: MakeServer, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'lettaweb.sqlite3'}"
    for after in KILLS:
        kill_migration(tmp_path, database, after)
    server = make_server(data_dir=tmp_path, DATABASE_URL=database)
    assert server.get("/v1/agents/").status_code == 200
    assert server.terminate() == 0
    with sqlite3.connect(tmp_path / "lettaweb.sqlite3") as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.postgresql
def test_it_migrates_postgresql_after_a_migration_was_killed(tmp_path: Path, empty_database: str) -> None:
    for after in KILLS[1:]:
        kill_migration(tmp_path, empty_database, after)
    again = migrate(tmp_path, empty_database)
    assert again.returncode == 0, again.stderr.decode()


@pytest.fixture
def empty_database(make_database: Callable[[], str]) -> Iterator[str]:
    make_database()  # skips where there is no PostgreSQL
    url = databases.create()
    yield url
    databases.drop(url)


def kill_migration(place: Path, database: str, after: int) -> None:
    done = migrate(place, database, after=after)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def migrate(place: Path, database: str, *, after: int = 1_000_000) -> subprocess.CompletedProcess[bytes]:
    given = {**clean_environment(), **base(place), "DATABASE_URL": database, "KILL_AFTER": str(after)}
    return subprocess.run(
        [sys.executable, "-c", MIGRATE], env=given, cwd=ROOT, capture_output=True, timeout=120, check=False
    )
