"""What the process itself takes: ``python -m tests.bench.process``, or ``measure()`` for a table.

Seconds from start to healthy; megabytes idle, and with the SDKs and the sandbox ready.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil

from tests.bench.place import KEYS, MEGABYTE, database, settle
from tests.servers import ROOT, base, clean_environment, free_port

TARGETS = {"healthy_seconds": "<= 3", "idle_mb": "<= 120", "ready_mb": "<= 200"}
STARTS = 3


def measure() -> dict[str, float]:
    """healthy_seconds (median of three warm starts), idle_mb right then, ready_mb when everything is imported."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, database() as chosen:
        environment = {
            **clean_environment(),
            **base(Path(directory)),
            **KEYS,
            **chosen,
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        }
        command = [sys.executable, str(ROOT / "manage.py")]
        subprocess.run([*command, "migrate", "--verbosity", "0"], env=environment, cwd=ROOT, check=True)
        found = [_start([*command, "web"], environment) for _ in range(STARTS)]
    return {
        "healthy_seconds": statistics.median(one[0] for one in found),
        "idle_mb": statistics.median(one[1] for one in found),
        "ready_mb": statistics.median(one[2] for one in found),
    }


def _start(command: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    port = free_port()
    begun = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(
            command, env={**environment, "LETTAWEB_PORT": str(port)}, cwd=ROOT, stdout=nothing, stderr=nothing
        )
    try:
        _await_health(port)
        took = time.monotonic() - begun
        shown = psutil.Process(process.pid)
        idle = shown.memory_info().rss / MEGABYTE
        settle(10)
        return took, idle, shown.memory_info().rss / MEGABYTE
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_health(port: int) -> None:
    for _ in range(6000):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/v1/health", trust_env=False, timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.01)
    raise AssertionError("the server did not become healthy")


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<18} {value:8.2f}   target {TARGETS[name]}")


if __name__ == "__main__":
    main()
