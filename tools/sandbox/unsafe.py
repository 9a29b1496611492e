"""Development only: a plain process for each call, with resource limits and nothing else; the contract is the same."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import threading

from . import config as configuration
from .base import Tier
from .config import SandboxConfig
from .flight import Ending, Flight, resolve
from .link import ENVIRONMENT, INSIDE, executable


class UnsafeRunner:
    """Threads that start a process each."""

    def __init__(self, config: SandboxConfig, tier: Tier) -> None:
        self.config, self.tier = config, tier
        self.lock = threading.Lock()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.cancelled: set[str] = set()
        self.threads = concurrent.futures.ThreadPoolExecutor(configuration.concurrency(config), "sandbox-unsafe")
        self.alive = True

    def submit(self, flight: Flight) -> None:
        """Run the call in a thread as soon as one is free."""
        self.threads.submit(self._run, flight)

    def end(self, flight: Flight) -> None:
        """End the call's process group."""
        with self.lock:
            self.cancelled.add(flight.id)
            if flight.id in self.running:
                _end_group(self.running[flight.id])

    def stop(self) -> None:
        """End all processes."""
        self.alive = False
        self.threads.shutdown(wait=False, cancel_futures=True)
        with self.lock:
            for process in self.running.values():
                _end_group(process)

    def forget(self) -> None:
        """Nothing was copied that could hurt."""

    def _run(self, flight: Flight) -> None:
        try:
            flight.open()
            flight.land(self._ending(flight))
        except Exception as error:
            flight.close()
            resolve(flight.future, error)
        finally:
            with self.lock:
                self.running.pop(flight.id, None)
                self.cancelled.discard(flight.id)

    def _ending(self, flight: Flight) -> Ending:
        process = self._start(flight)
        ended = ""
        try:
            process.wait(flight.timeout)
        except subprocess.TimeoutExpired:
            ended = "timeout"
        _end_group(process)
        code = process.wait()
        return Ending(code, "cancelled" if flight.id in self.cancelled else ended)

    def _start(self, flight: Flight) -> subprocess.Popen[bytes]:
        request, result, stdout, stderr = flight.files
        command = [executable(), "-I", "-S", "-B", INSIDE, "unsafe", str(request), str(result)]
        process = subprocess.Popen(
            command,
            env=ENVIRONMENT,
            cwd="/tmp",
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(request, result),
            start_new_session=True,
        )
        with self.lock:
            self.running[flight.id] = process
            if flight.id in self.cancelled:
                _end_group(process)
        self._tell(process, flight)
        return process

    def _tell(self, process: subprocess.Popen[bytes], flight: Flight) -> None:
        """Send the plan by stdin."""
        plan = configuration.plan(self.config, 0) | {"environment": flight.environment, "server": os.getpid()}
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps(plan).encode())


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
