"""``manage.py serve`` and ``web`` as whole processes: start, stop, crashes, orphans."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from lettaweb.settings import BASE_DIR
from tests.servers import PASSWORD, ROOT, ServerProcess, base, clean_environment, free_port

pytestmark = pytest.mark.server
MakeServer = Callable[..., ServerProcess]


def wait_until(condition: Callable[[], object], seconds: float = 150) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come true in time")


def members(server: ServerProcess, word: str) -> list[psutil.Process]:
    """The living processes of the command ``word`` below the server."""
    found = []
    for one in server.everybody():
        try:
            if word in one.cmdline() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def child(server: ServerProcess, word: str) -> psutil.Process:
    found = members(server, word)
    assert found, f"no {word} below {server.pid}"
    return min(found, key=lambda one: one.create_time())


def run(data_dir: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**clean_environment(), **base(data_dir), **environment}
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)


def test_it_starts_from_nothing_and_says_what_to_do(make_server: MakeServer, tmp_path: Path) -> None:
    server = make_server(data_dir=tmp_path, LETTAWEB_ADMIN_PASSWORD="")
    wait_until(lambda: "log in as" in server.tail())
    text = server.tail()
    assert server.url in text
    password = text.split("admin / ")[1].split()[0]
    assert f"curl -s {server.url}/v1/agents/" in text
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        form = client.get("/login/")
        assert ">Username<" in form.text
        assert ">Password<" in form.text
        fields = {"username": "admin", "password": password, "csrfmiddlewaretoken": client.cookies["lettaweb_csrf"]}
        assert client.post("/login/", data=fields).status_code == 302
    for name in ("secret.key", "serve.lock", "write.gate"):
        assert stat.S_IMODE((server.data_dir / name).stat().st_mode) == 0o600, name
    assert server.terminate() == 0
    assert all(not one.is_running() for one in server.family)
    server.start()
    wait_until(lambda: server.tail().count("log in as") == 2)
    assert server.tail().count(password) == 1, "the password is shown once"


def test_it_serves_the_api_and_figures(server: ServerProcess) -> None:
    assert server.get("/v1/health").json()["status"] == "ok"
    assert server.get("/v1/agents/").status_code == 200
    assert "lettaweb_runs" in server.get("/metrics").text
    assert server.get("/v1/agents/", headers={"Host": "evil.example"}).status_code in (400, 403)
    assert server.get("/v1/agents/", headers={"Origin": "http://evil.example"}).status_code == 403


def test_it_serves_under_a_name_of_its_own(make_server: MakeServer) -> None:
    """As README says for others than yourself; machines ask for health by whatever address they have."""
    server = make_server(LETTAWEB_HOST="0.0.0.0", LETTAWEB_ALLOWED_HOSTS="agents.example.org", LETTAWEB_HTTPS="1")
    wait_until(lambda: "log in as" in server.tail())
    for path in ("/v1/health", "/v1/ready/", "/latest/health/"):
        assert server.get(path).status_code == 200, path
    assert server.get("/v1/agents/").status_code == 400
    assert server.get("/v1/agents/", headers={"Host": "agents.example.org"}).status_code == 401


def test_it_allows_itself_as_many_files_as_it_may(make_server: MakeServer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        server = make_server()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limits = Path(f"/proc/{child(server, 'web').pid}/limits").read_text(encoding="ascii")
    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    assert int(line.split()[3]) > 256


def test_it_refuses_a_second_server_on_the_same_data(server: ServerProcess) -> None:
    done = run(server.data_dir, "serve", LETTAWEB_PORT=str(free_port()))
    assert done.returncode != 0
    assert f"process {server.pid}" in done.stderr


def test_it_starts_a_killed_web_process_and_queue_again(make_server: MakeServer) -> None:
    server = make_server()
    for word in ("web", "cluster"):
        wait_until(partial(members, server, word))
        victim = child(server, word)
        victim.kill()
        wait_until(partial(alive_but, server, word, victim.pid))
    wait_until(server.healthy)
    assert server.terminate() == 0


def alive_but(server: ServerProcess, word: str, pid: int) -> bool:
    return any(one.pid != pid for one in members(server, word))


def test_it_leaves_no_orphans_when_it_is_killed(make_server: MakeServer) -> None:
    server = make_server()
    wait_until(lambda: len(members(server, "cluster")) >= 4)
    family = server.everybody()
    os.kill(server.pid, signal.SIGKILL)
    _gone, alive = psutil.wait_procs(family, timeout=40)
    assert alive == []
    server.start()
    assert server.terminate() == 0


def test_it_starts_a_queue_that_hangs_again(make_server: MakeServer) -> None:
    server = make_server(LETTAWEB_QUEUE_BEAT_SECONDS="2", LETTAWEB_QUEUE_DEAD_SECONDS="8")
    wait_until(lambda: (server.data_dir / "queue.beat").exists())
    first = (server.data_dir / "queue.beat").read_text()
    wait_until(lambda: (server.data_dir / "queue.beat").read_text() != first)
    leader = child(server, "cluster")
    for member in [leader, *leader.children(recursive=True)]:
        member.suspend()
    wait_until(lambda: alive_but(server, "cluster", leader.pid) and not leader.is_running())
    before = (server.data_dir / "queue.beat").read_text()
    wait_until(lambda: (server.data_dir / "queue.beat").read_text() != before)


def test_it_says_that_its_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(tmp_path, "serve", LETTAWEB_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "Cannot listen on" in done.stderr


REFUSED = {
    "open to everybody": ({"LETTAWEB_HOST": "0.0.0.0", "LETTAWEB_AUTH": "open"}, "lettaweb.E002"),
    "unknown mode": ({"LETTAWEB_AUTH": "maybe"}, "lettaweb.E001"),
    "lease too short": ({"LETTAWEB_LEASE_SECONDS": "2"}, "lettaweb.E009"),
    "no runs": ({"LETTAWEB_MAX_RUNS": "0"}, "lettaweb.E010"),
}


@pytest.mark.parametrize(("environment", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_to_start_on_bad_settings(tmp_path: Path, environment: dict[str, str], message: str) -> None:
    done = run(tmp_path, "serve", LETTAWEB_PORT=str(free_port()), **environment)
    assert done.returncode != 0
    assert message in done.stderr


def test_it_refuses_a_plain_daphne(tmp_path: Path) -> None:
    variables = {**clean_environment(), **base(tmp_path)}
    daphne = Path(sys.executable).with_name("daphne")
    command = [str(daphne), "-p", str(free_port()), "lettaweb.asgi:application"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=BASE_DIR, timeout=60, check=False)
    assert done.returncode != 0
    assert "lettaweb.E003" in done.stderr


def test_it_wants_tokens_on_other_addresses(make_server: MakeServer) -> None:
    server = make_server(LETTAWEB_HOST="0.0.0.0")
    refused = server.get("/v1/agents/")
    assert (refused.status_code, refused.json()) == (401, {"detail": "Unauthorized"})
    token = server.manage("create_token", "admin", "--name", "test", "--days", "1")
    for headers in ({"Authorization": f"Bearer {token}"}, {"X-BARE-PASSWORD": f"password {token}"}):
        assert server.get("/v1/agents/", headers=headers).status_code == 200
    assert token not in server.tail(10**7)
    assert token not in (server.data_dir / "lettaweb.sqlite3").read_bytes().decode("latin-1")


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def test_it_keeps_the_given_password(make_server: MakeServer) -> None:
    server = make_server()
    wait_until(lambda: "log in as" in server.tail())
    assert PASSWORD not in server.tail(10**7)
