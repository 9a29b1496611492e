"""A server and a scripted provider in processes of their own, and what they took: shared by the measurements."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests import databases
from tests.servers import ROOT, ServerProcess, start_server

MODEL = "anthropic/claude-sonnet-4-5-20250929"
MEGABYTE = 1024 * 1024
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-test-key"}


@dataclass
class Place:
    """The server and its model; ``model`` drives the provider over its control routes."""

    server: ServerProcess
    provider: psutil.Process
    model: httpx.Client
    api: httpx.Client

    def script(self, *answers: Mapping[str, Any], marker: str = "") -> None:
        self.model.post("/_control/script", json={"answers": answers, "marker": marker}).raise_for_status()

    def reset(self) -> None:
        self.model.post("/_control/reset").raise_for_status()

    def agent(self, **fields: Any) -> str:
        """A new agent's id."""
        body = {"agent_type": "letta_v1_agent", "model": MODEL, "include_base_tools": False, **fields}
        answered = self.api.post("/v1/agents/", json=body)
        answered.raise_for_status()
        return str(answered.json()["id"])

    def send(self, agent: str, text: str = "hi", **options: Any) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": text}], **options}
        answered = self.api.post(f"/v1/agents/{agent}/messages", json=body)
        answered.raise_for_status()
        return answered

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the server's web process and of the provider so far."""
        return cpu_of(psutil.Process(self.server.pid)), cpu_of(self.provider)

    def memory(self) -> float:
        """Megabytes of the web process."""
        return psutil.Process(self.server.pid).memory_info().rss / MEGABYTE


def cpu_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextlib.contextmanager
def database() -> Iterator[dict[str, str]]:
    """The variables of a new, empty database: on the PostgreSQL of DATABASE_URL, else SQLite in the data directory."""
    if not databases.chosen():
        yield {}
        return
    url = databases.create()
    try:
        yield {"DATABASE_URL": url}
    finally:
        databases.drop(url)


@contextlib.contextmanager
def place(**environment: str) -> Iterator[Place]:
    """A web process alone, on an empty database of its own."""
    more_files()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        provider() as (process, url),
        database() as chosen,
    ):
        given = {"ANTHROPIC_BASE_URL": url, **KEYS, "LETTAWEB_MAX_RUNS": "2000", **chosen, **environment}
        server = start_server(Path(directory), command="web", environment=given)
        with httpx.Client(base_url=url, trust_env=False) as model:
            with httpx.Client(base_url=server.url, timeout=120, trust_env=False) as api:
                try:
                    yield Place(server, process, model, api)
                finally:
                    server.stop()


@contextlib.contextmanager
def provider() -> Iterator[tuple[psutil.Process, str]]:
    """A scripted provider that keeps no log, and its URL."""
    command = [sys.executable, "-m", "tests.scripted", "--forget"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=dict(os.environ)) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        try:
            yield psutil.Process(process.pid), f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def more_files() -> None:
    """Many connections at once need many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))


def settle(seconds: float = 1.0) -> None:
    """Let what was begun come to rest before it is looked at."""
    time.sleep(seconds)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
