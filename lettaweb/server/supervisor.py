"""Keeps the web process and the queue alive, and ends them in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from django.conf import settings

from lettaweb.server.beat import Heartbeat
from lettaweb.server.family import PARENT_PIPE, kill_group, start_pipe
from lettaweb.server.stopping import Stop

log = structlog.get_logger(__name__)

CANNOT_START = 3  # a child's exit code: starting it again would not help
_LOOK = 0.3
_MOST_CRASHES, _WITHIN = 5, 60.0
_LONGEST_PAUSE = 10.0


@dataclass
class Child:
    """One process with a group of its own; ``grace`` are the seconds that it may take to end."""

    name: str
    arguments: Sequence[str]
    grace: float
    process: subprocess.Popen[bytes] | None = None
    crashes: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_CRASHES))
    start_at: float = 0.0

    def start(self, pipe: int) -> None:
        environment = {**os.environ, PARENT_PIPE: str(pipe)}
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *self.arguments]
        self.process = subprocess.Popen(command, env=environment, pass_fds=(pipe,), process_group=0)

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def tell(self, number: signal.Signals) -> None:
        if self.process is not None and self.running():
            self.process.send_signal(number)

    def sweep(self) -> None:
        """Leave nothing of the group behind: a dead leader's children may live on."""
        if self.process is not None:
            kill_group(self.process.pid)
            self.process.wait()


class Supervisor:
    """Starts ``children``, starts again what dies, calls ``ready`` once ``is_ready`` says so."""

    def __init__(self, children: Sequence[Child], *, is_ready: Callable[[], bool], ready: Callable[[], None]) -> None:
        self.children = list(children)
        self.is_ready, self.ready = is_ready, ready
        self.stop = Stop()
        self.exit_code = 0
        self.heartbeat = Heartbeat()
        self._announced = False

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT, or until a child cannot live; the exit code."""
        self.stop.at_signals()
        pipe, _writing, close = start_pipe()
        try:
            while not self.stop.is_set():
                self._look(pipe)
                self.stop.wait(_LOOK)
        finally:
            self._end()
            close()
        return self.exit_code

    def _look(self, pipe: int) -> None:
        for child in self.children:
            if not child.running():
                self._revive(child, pipe)
        if not self._announced and self.is_ready():
            self._announced = True
            self.ready()
        self._look_at_queue()

    def _revive(self, child: Child, pipe: int) -> None:
        if child.process is not None and child.start_at == 0.0:
            self._note_death(child)
        if time.monotonic() >= child.start_at and not self.stop.is_set():
            child.start_at = 0.0
            child.start(pipe)
            if child.name == "queue":
                self.heartbeat.restart()

    def _note_death(self, child: Child) -> None:
        process, now = child.process, time.monotonic()
        assert process is not None
        child.sweep()
        child.crashes.append(now)
        often = len(child.crashes) == _MOST_CRASHES and now - child.crashes[0] < _WITHIN
        log.error("child_died", child=child.name, code=process.returncode)
        if process.returncode == CANNOT_START or often:
            log.critical("gave_up", child=child.name)
            self.exit_code = 1
            self.stop.set()
        recent = sum(1 for crash in child.crashes if now - crash < _WITHIN)
        child.start_at = now + min(_LONGEST_PAUSE, 0.25 * 2**recent)

    def _look_at_queue(self) -> None:
        queue = next((child for child in self.children if child.name == "queue"), None)
        if queue is None or not queue.running():
            return
        self.heartbeat.look()
        if self.heartbeat.dead:
            log.error("queue_hangs")
            queue.sweep()

    def _end(self) -> None:
        for child in self.children:
            child.tell(signal.SIGTERM)
        for child in self.children:
            self._wait(child)
            child.sweep()

    def _wait(self, child: Child) -> None:
        if child.process is None:
            return
        try:
            child.process.wait(timeout=child.grace)
        except subprocess.TimeoutExpired:
            log.error("child_killed", child=child.name)
