"""The server's side of the zygote: starts it, hands it calls, hears how they ended, starts it again when it dies."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from . import config as configuration
from . import proxy
from .base import SandboxUnavailable
from .config import SandboxConfig
from .flight import Ending, Flight, resolve
from .inside import message

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
START_TIMEOUT = 30.0
SEND_TIMEOUT = 5
GRACE = 5.0  # seconds after a deadline before a zygote that does not answer is taken for dead
FIRST_DELAY, LONGEST_DELAY, HEALTHY_AFTER = 0.1, 5.0, 10.0
MOST_FAILED_STARTS = 5
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}


class StartFailed(Exception):
    """The zygote could not be set up; the text says why."""


def executable() -> str:
    """Return the Python that runs the sandbox: the one that the virtual environment was made from."""
    return getattr(sys, "_base_executable", None) or sys.executable


class Link:
    """One zygote and the calls that wait for it or run in it. One thread of its own starts it and listens to it."""

    def __init__(self, config: SandboxConfig, tier: int) -> None:
        self.config, self.tier = config, tier
        self.facts: dict[str, Any] = {}
        self.failure = ""
        self.places = configuration.concurrency(config)
        self.lock = threading.Lock()
        self.waiting: collections.deque[Flight] = collections.deque()
        self.flying: dict[str, Flight] = {}
        self.proxies: dict[str, proxy.Proxy] = {}
        self.control: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.settled = threading.Event()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, name="sandbox", daemon=True)

    def start(self) -> None:
        """Start the zygote; raises StartFailed."""
        self.thread.start()
        if not self.settled.wait(START_TIMEOUT) or self.failure:
            self.stop()
            raise StartFailed(self.failure or "the sandbox did not start in time")

    def stop(self) -> None:
        """End the zygote and every call in it, and wait until they are gone."""
        self.stopping.set()
        with self.lock, contextlib.suppress(OSError):
            if self.control is not None:
                self.control.shutdown(socket.SHUT_RDWR)
        if self.thread.is_alive() and threading.current_thread() is not self.thread:
            self.thread.join(10)

    @property
    def alive(self) -> bool:
        """Whether calls can still be handed in."""
        return self.thread.is_alive() and not self.stopping.is_set()

    def submit(self, flight: Flight) -> None:
        """Start a call, or let it wait for a place; its future gets the outcome."""
        with self.lock:
            self.waiting.append(flight)
            alive = self.alive
            if alive:
                self._fill_places()
        if not alive:
            self._give_up()

    def end(self, flight: Flight) -> None:
        """End a call that nobody waits for any more."""
        with self.lock:
            if flight in self.waiting:
                self.waiting.remove(flight)
            elif flight.id in self.flying:
                self._say({"do": "end", "id": flight.id})

    def _fill_places(self) -> None:
        """Hand waiting calls to the zygote while there are places. The lock is held."""
        while self.control is not None and self.waiting and len(self.flying) < self.places:
            flight = self.waiting.popleft()
            if not flight.future.cancelled():
                self._launch(flight)

    def _launch(self, flight: Flight) -> None:
        """Send one call off; what goes wrong here (no descriptors left, arguments that are no JSON) is its caller's."""
        channels: list[int] = []
        try:
            flight.open()
            if flight.call.network:
                self.proxies[flight.id], channel = proxy.open_proxy(flight.call.network, self.config)
                channels.append(channel)
        except Exception as error:
            flight.close()
            resolve(flight.future, error)
            return
        header = {
            "do": "run",
            "id": flight.id,
            "timeout": flight.timeout,
            "limits": configuration.limits(self.config),
            "network": bool(flight.call.network),
            "environment": flight.environment,
        }
        self.flying[flight.id] = flight
        self._say(header, [*flight.files, *channels])
        message.close_all(channels)

    def _say(self, content: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Send to the zygote; one that takes nothing is shut down, its thread then does the rest. The lock is held."""
        if self.control is None:
            return
        try:
            message.send(self.control, content, descriptors)
        except OSError:
            with contextlib.suppress(OSError):
                self.control.shutdown(socket.SHUT_RDWR)

    def _work(self) -> None:
        """The thread: one zygote after the other, with growing pauses while they die young."""
        delay, failed = FIRST_DELAY, 0
        while not self.stopping.is_set():
            born = time.monotonic()
            try:
                self._live_once()
                failed = 0
            except Exception as error:  # whatever it is, those who wait must hear of it
                failed += 1
                self.failure = str(error) or type(error).__name__
            if not self.settled.is_set() or failed >= MOST_FAILED_STARTS:
                break
            delay = FIRST_DELAY if time.monotonic() - born > HEALTHY_AFTER else min(2 * delay, LONGEST_DELAY)
            self.stopping.wait(delay)
        self.stopping.set()
        self.settled.set()
        self._give_up()

    def _give_up(self) -> None:
        with self.lock:
            left = list(self.waiting)
            self.waiting.clear()
        for flight in left:
            resolve(flight.future, SandboxUnavailable(self.failure or "the sandbox has been stopped"))

    def _live_once(self) -> None:
        """Start a zygote and listen until it is gone; raises StartFailed."""
        control = self._spawn()
        try:
            self._greet(control)
            with self.lock:
                self.control, self.failure = control, ""
                self._fill_places()
            self.settled.set()
            self._listen(control)
        finally:
            with self.lock:
                self.control = None
            control.close()
            self._clear_away()

    def _spawn(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [executable(), "-I", "-S", "-B", INSIDE, str(theirs.fileno()), str(os.getpid())],
                env=ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return ours

    def _greet(self, control: socket.socket) -> None:
        control.settimeout(START_TIMEOUT)
        try:
            message.send(control, configuration.plan(self.config, self.tier))
            answer, _ = message.receive(control)
        except OSError as error:
            raise StartFailed(f"the sandbox did not answer: {error}") from error
        if answer is None or "ready" not in answer:
            raise StartFailed((answer or {}).get("failed", "the sandbox ended while it was being set up"))
        self.facts = answer
        control.settimeout(None)
        seconds = SEND_TIMEOUT.to_bytes(8, sys.byteorder) + bytes(8)
        control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)

    def _listen(self, control: socket.socket) -> None:
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while True:
            if not poll.poll(1000):
                if self._hangs():
                    return
                continue
            try:
                content, _ = message.receive(control)
            except OSError:
                return
            if content is None:
                return
            self._land(content)

    def _hangs(self) -> bool:
        now = time.monotonic()
        with self.lock:
            return any(now > item.started + item.timeout + GRACE for item in self.flying.values())

    def _land(self, content: dict[str, Any]) -> None:
        with self.lock:
            flight = self.flying.pop(content["done"], None)
            server = self.proxies.pop(content["done"], None)
            self._fill_places()
        if server is not None:
            server.close()
        if flight is not None:
            flight.land(Ending(content.get("code", 0), content.get("ended", ""), content.get("failed", "")))

    def _clear_away(self) -> None:
        """End what is left of the zygote's processes, then tell those who waited."""
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
            self.process.kill()
            self.process.wait()
        with self.lock:
            lost, self.flying = list(self.flying.values()), {}
            servers, self.proxies = list(self.proxies.values()), {}
        for server in servers:
            server.close()
        for flight in lost:
            flight.land(Ending(failed="the sandbox ended while the tool was running"))
