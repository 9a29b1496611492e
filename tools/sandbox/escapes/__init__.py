"""The attempts to break out of the sandbox, and what runs them; for the doctor and the tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.sandbox import census
from tools.sandbox.base import SandboxCall, SandboxOutcome
from tools.sandbox.flight import Flight
from tools.sandbox.inside import linux
from tools.sandbox.inside.syscalls import NUMBERS
from tools.sandbox.runners import ZygoteRunner

from .files import FILES
from .kernel import KERNEL
from .leaks import LEAKS
from .memory import MEMORY
from .network import NETWORK
from .processes import PROCESSES
from .results import RESULTS
from .table import Escape

ESCAPES: list[Escape] = [*FILES, *PROCESSES, *MEMORY, *RESULTS, *NETWORK, *KERNEL, *LEAKS]
PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt went: ``wrong`` is empty when it was contained and left nothing behind."""

    escape: Escape
    wrong: str
    seconds: float


@contextlib.contextmanager
def surroundings() -> Iterator[dict[str, Any]]:
    """Put up what an attacker would look for: a file, a database port and unix sockets. Gives the facts."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lettaweb-bait-"))
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "db.sqlite3")
        with open(path, "w", encoding="ascii") as file:
            file.write("bait")
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        named, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        abstract_name = f"\0lettaweb-bait-{secrets.token_hex(8)}"
        for listener, address in ((named, os.path.join(folder, "socket")), (abstract, abstract_name)):
            listener.bind(address)
            listener.listen()
        yield {
            "server": os.getpid(),
            "files": [path, os.path.abspath(__file__)],
            "mark": "DATABASE_URL=",
            "port": port.getsockname()[1],
            "socket": os.path.join(folder, "socket"),
            "abstract": abstract_name,
            "numbers": NUMBERS[linux.MACHINE],
        }


def attempt(escape: Escape, runner: ZygoteRunner, facts: dict[str, Any]) -> Verdict:
    """Run one attempt; also wrong are processes that stay and a zygote that died."""
    started = time.monotonic()
    before = runner.link.process.pid if runner.link.process else 0
    if escape.first:
        outcome = _call(escape, escape.first_source, runner, facts)
        if outcome.status != "success":
            return Verdict(escape, f"the call before failed: {outcome.error}", time.monotonic() - started)
    wrong = escape.check(_call(escape, escape.source, runner, facts))
    left = census.left_over(runner.link, PATIENCE)
    wrong = wrong or (f"processes left: {left}" if left else "")
    now = runner.link.process.pid if runner.link.process else 0
    wrong = wrong or ("the zygote died" if now != before or not runner.alive else "")
    return Verdict(escape, wrong, time.monotonic() - started)


def _call(escape: Escape, source: str, runner: ZygoteRunner, facts: dict[str, Any]) -> SandboxOutcome:
    env = dict(escape.env) if source == escape.first_source else {}
    call = SandboxCall(
        id="escape",
        source=source,
        function="escape",
        arguments={"facts": {**facts, "network": bool(escape.network)}},
        env=env,
        timeout=escape.timeout,
        network=escape.network,
    )
    flight = Flight(call, runner.config)
    runner.submit(flight)
    return flight.future.result(escape.timeout + 2 * PATIENCE)


def run_all(runner: ZygoteRunner) -> Iterator[Verdict]:
    """Run the list for the runner's tier."""
    with surroundings() as facts:
        for escape in ESCAPES:
            if runner.tier.number in escape.tiers:
                yield attempt(escape, runner, facts)
