"""The disk is full, the database is locked, restarted or cut off: clear refusals, and a recovery without a restart."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import _missing
from tests.scripted.answers import answer, text, tokens, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Answer, Client, text_of
from tests.survival.conftest import mortal
from tests.survival.kit import MARK_AND_WAIT, WAIT, Faults, check_whole, follow, marks, wait_until

pytestmark = pytest.mark.server
MakeServer = Callable[..., ServerProcess]
FULL = 2.5  # seconds that the disk stays full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted here: " + mounted.stderr.decode(errors="replace").strip())
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def file_url(data: Path) -> str:
    """SQLite, whatever the other tests run on."""
    return f"sqlite:///{data / 'lettaweb.sqlite3'}"


def fill(place: Path) -> Path:
    """Write until nothing fits any more."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return filler


def refused(answered: Answer) -> bool:
    return answered.status == 503 and bool(answered.headers["Retry-After"]) and bool(answered.body["detail"])


def users(api: Client, agent: str) -> list[str]:
    return [m["content"] for m in api.history(agent) if m["message_type"] == "user_message"]


def test_it_survives_a_full_disk(
    make_server: MakeServer, small_disk: Path, faults: Faults, provider: ScriptedProvider, tmp_path: Path
) -> None:
    data = small_disk / "data"
    data.mkdir()
    server = mortal(make_server, faults.directory, data_dir=data, DATABASE_URL=file_url(data))
    with Client(server.url, provider) as api:
        tool = api.tool(MARK_AND_WAIT)
        talking, acting, idle = api.agent(), api.agent(tool), api.agent()
        path = tmp_path / "marks"
        call = tool_use(tool["name"], {"path": str(path), "text": "one", "until": str(path) + ".go"})
        provider.script("talk", answer(tokens(400), delay=4, hold="gate", hold_at=30))
        provider.script("act", answer(call), answer(text("done")))
        talker, actor = follow(api, talking, "talk"), follow(api, acting, "act")
        provider.await_held("gate", WAIT)
        wait_until(lambda: marks(path), "the tool")
        filler = fill(small_disk)
        Path(f"{path}.go").touch()
        provider.release("gate")
        before = psutil.Process(server.pid).cpu_times()
        assert refused(api.send(idle, "no room for " + "this " * 20_000))
        assert server.healthy()
        time.sleep(FULL)
        after = psutil.Process(server.pid).cpu_times()
        assert (after.user + after.system) - (before.user + before.system) < FULL * 0.8, "it spins"
        filler.unlink()
        talker.join()
        actor.join()
        for agent, follower in ((talking, talker), (acting, actor)):
            assert check_whole(api, agent, follower)["status"] == "completed"
        assert list(text_of(talker.chunks).values()) == ["tok " * 400]
        assert marks(path) == ["one"]
        results = [m["status"] for m in api.history(acting) if m["message_type"] == "tool_return_message"]
        assert results == ["success"]
        assert users(api, idle) == []
        assert api.send(idle, "now there is").stop == "end_turn"
    server.stop()
    assert provider.refused == []


def test_it_survives_a_locked_database(
    make_server: MakeServer, faults: Faults, provider: ScriptedProvider, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    server = mortal(make_server, faults.directory, data_dir=data, DATABASE_URL=file_url(data))
    with Client(server.url, provider) as api:
        talking, idle = api.agent(), api.agent()
        provider.script("talk", answer(tokens(60), delay=5, hold="gate", hold_at=30))
        talker = follow(api, talking, "talk")
        provider.await_held("gate", WAIT)
        locker = sqlite3.connect(server.data_dir / "lettaweb.sqlite3", isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        provider.release("gate")
        assert refused(api.send(idle, "locked out"))
        assert api.get("/v1/agents/", limit=1)
        locker.execute("ROLLBACK")
        locker.close()
        talker.join()
        assert check_whole(api, talking, talker)["status"] == "completed"
        assert list(text_of(talker.chunks).values()) == ["tok " * 60]
        assert users(api, idle) == []
        assert api.send(idle, "let in").stop == "end_turn"
    server.stop()


# --- PostgreSQL and Redis of our own -----------------------------------------------------------------


class Postgres:
    """A private instance, started from the machine's binaries."""

    def __init__(self, place: Path, port: int) -> None:
        self.place, self.port = place, port
        self.url = f"postgres://postgres@127.0.0.1:{port}/postgres"
        self._user = "postgres" if os.getuid() == 0 else None

    def run(self, *command: str) -> None:
        done = subprocess.run(command, user=self._user, capture_output=True, cwd="/", check=False)
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        options = f"-p {self.port} -k {self.place} -c listen_addresses=127.0.0.1 -c max_connections=40 -c fsync=off"
        log = str(self.place / "log")
        self.run(binary("pg_ctl"), "-D", str(self.place / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self.run(binary("pg_ctl"), "-D", str(self.place / "data"), "-w", "-m", "fast", "stop")


def binary(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        _missing(f"no {name} below /usr/lib/postgresql")
    return str(found[-1])


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    from tests.servers import free_port

    place = Path("/tmp") / f"survival-pg-{os.getpid()}-{free_port()}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    made = Postgres(place, free_port())
    made.run(binary("initdb"), "-D", str(place / "data"), "-U", "postgres", "-A", "trust", "--no-sync")
    made.start()
    yield made
    subprocess.run([binary("pg_ctl"), "-D", str(place / "data"), "-m", "immediate", "stop"], user=made._user, cwd="/")
    subprocess.run(["rm", "-rf", str(place)], check=True)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL of a private Redis, and its process."""
    from tests.servers import free_port

    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(tmp_path), "--bind", "127.0.0.1"]
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        _missing("no redis-server on this machine")
    yield f"redis://127.0.0.1:{port}/0", process
    process.kill()
    process.wait()


@pytest.mark.postgresql
def test_it_survives_restarts_of_postgresql_and_the_end_of_redis(
    make_server: MakeServer,
    faults: Faults,
    provider: ScriptedProvider,
    postgres: Postgres,
    redis: tuple[str, subprocess.Popen[bytes]],
) -> None:
    server = mortal(make_server, faults.directory, DATABASE_URL=postgres.url, REDIS_URL=redis[0])
    with Client(server.url, provider) as api:
        talking, idle = api.agent(), api.agent()
        provider.script("talk", answer(tokens(60), delay=10, hold="gate", hold_at=30))
        talker = follow(api, talking, "talk")
        provider.await_held("gate", WAIT)
        redis[1].kill()
        assert api.send(idle, "without redis").stop == "end_turn"
        postgres.stop()
        provider.release("gate")
        assert refused(api.send(idle, "nobody home"))
        assert server.healthy()
        time.sleep(1.0)
        postgres.start()
        talker.join()
        assert talker.breaks == 0, "an open stream waits for its database"
        assert check_whole(api, talking, talker)["status"] == "completed"
        assert list(text_of(talker.chunks).values()) == ["tok " * 60]
        wait_until(lambda: api.send(idle, "back again").status == 200, "the recovery", 10)
        assert users(api, idle) == ["without redis", "back again"]
        postgres.stop()
        postgres.start()
        statuses = [api.send(idle, f"after an unnoticed restart {n}").status for n in range(6)]
        assert statuses.count(503) <= 1, statuses
        assert statuses[-1] == 200
    server.stop()
    assert provider.refused == []
