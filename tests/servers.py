"""Whole server processes for tests: started on a free port, waited for, ended with all their children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "correct horse battery"
START_SECONDS = 120.0


@dataclass
class ServerProcess:
    """A server. ``url`` has no trailing slash; ``log`` is the file with its stdout and stderr.

    ``program``: what Python runs in place of ``manage.py command``; PORT stands for the port.
    """

    data_dir: Path
    command: str
    environment: dict[str, str]
    port: int = 0
    log: Path = Path()
    process: subprocess.Popen[bytes] | None = None
    family: list[psutil.Process] = field(default_factory=list)
    program: Sequence[str] = ()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start (again) and wait for health; AssertionError with the log's end when it does not come."""
        self.port = self.port or free_port()
        self.log = self.data_dir / "server.log"
        self.environment["LETTAWEB_PORT"] = str(self.port)
        program = self.program or [str(ROOT / "manage.py"), self.command]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *(part.replace("PORT", str(self.port)) for part in program)],
                env=self.environment, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
            )  # fmt: skip
        self.wait_healthy()

    def wait_healthy(self, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.tail()}")
            if self.healthy():
                self.family = self.everybody()
                return
            time.sleep(0.1)
        raise AssertionError(f"the server is not healthy after {seconds} s:\n{self.tail()}")

    def healthy(self) -> bool:
        try:
            return bool(self.get("/v1/health", timeout=2).status_code == 200)
        except httpx.HTTPError:
            return False

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, trust_env=False, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, trust_env=False, **options)

    def manage(self, *arguments: str, seconds: float = 60) -> str:
        """The output of another management command against the same data."""
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self.environment, capture_output=True, text=True, cwd=ROOT, timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def everybody(self) -> list[psutil.Process]:
        """The process and all that it started, while it lives."""
        try:
            parent = psutil.Process(self.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def terminate(self, seconds: float = 40) -> int:
        """SIGTERM, and the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def kill(self) -> None:
        """SIGKILL to everybody at once, like a power cut."""
        for member in {*self.family, *self.everybody()}:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        if self.process is not None:
            self.process.wait(timeout=10)

    def stop(self) -> None:
        """End it for good, kindly if it still answers."""
        if self.process is not None and self.process.poll() is None:
            try:
                self.terminate(seconds=20)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def tail(self, size: int = 6000) -> str:
        return self.log.read_bytes()[-size:].decode("utf-8", "replace") if self.log.exists() else ""


def start_server(
    data_dir: Path,
    *,
    command: str = "serve",
    environment: Mapping[str, str] = {},
    migrate: bool = True,
    program: Sequence[str] = (),
) -> ServerProcess:
    """A started, healthy server. ``environment`` comes on top of what tests want."""
    variables = {**clean_environment(), **base(data_dir), **environment}
    made = ServerProcess(data_dir, command, variables, program=program)
    if migrate and command != "serve":
        made.manage("migrate", "--verbosity", "0")
    made.start()
    return made


def base(data_dir: Path) -> dict[str, str]:
    return {
        "LETTAWEB_DATA_DIR": str(data_dir),
        "LETTAWEB_ADMIN_PASSWORD": PASSWORD,
        "LETTAWEB_DRAIN_SECONDS": "5",
        "LETTAWEB_READER_SECONDS": "4",
        "LETTAWEB_LOG_FORMAT": "console",
        "PYTHONUNBUFFERED": "1",
        "NO_PROXY": "*",
    }


def clean_environment() -> dict[str, str]:
    """Our environment without what would change a server: its own variables, keys and proxies."""
    unwanted = ("LETTAWEB_", "DJANGO_", "DATABASE_URL", "REDIS_URL", "ANTHROPIC_", "OPENAI_")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(unwanted) and not name.lower().endswith("_proxy")
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
