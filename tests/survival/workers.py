"""A ``runworker`` process beside a server of a test."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers import ROOT, ServerProcess
from tests.survival.kit import wait_until


@dataclass
class Worker:
    """The process; ``log`` has its stdout and stderr."""

    process: subprocess.Popen[bytes]
    log: Path

    def terminate(self, seconds: float = 40) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


def start_worker(server: ServerProcess, **environment: str) -> Worker:
    """A worker on the database of ``server``, ready to take runs."""
    log = server.data_dir / f"worker-{len(list(server.data_dir.glob('worker-*')))}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "runworker"],
            env={**server.environment, "PGAPPNAME": "worker", **environment},
            stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
        )  # fmt: skip
    made = Worker(process, log)
    wait_until(lambda: "working" in log.read_text() or process.poll() is not None, "the worker")
    assert process.poll() is None, log.read_text()
    return made
