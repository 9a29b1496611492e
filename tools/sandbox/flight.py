"""One call on its way: the files it is given, and the outcome read from them when its processes are gone."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import frame, redaction
from .base import SandboxCall, SandboxOutcome
from .config import Limits, SandboxConfig

PROXY = "http://127.0.0.1:3128"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
LONGEST_ERROR = 1000
ARGUMENTS = ("agent_state", "agent_id")

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the process of a call ended: exit code (negative: signal), and whether we ended it."""

    code: int = 0
    ended: str = ""
    failed: str = ""


@dataclass
class Flight:
    """A call, its four memory files and the future that its caller waits for."""

    call: SandboxCall
    config: SandboxConfig
    environment: str = ""
    future: concurrent.futures.Future[SandboxOutcome] = field(default_factory=concurrent.futures.Future)
    files: list[int] = field(default_factory=list)
    started: float = 0.0
    id: str = field(default_factory=lambda: str(next(_numbers)))

    @property
    def timeout(self) -> float:
        """Seconds that the call may take; a tool may only lower the limit."""
        return max(0.05, min(self.call.timeout, self.config.limits.timeout))

    def open(self) -> None:
        """Make the files and write the request."""
        self.started = time.monotonic()
        data = json.dumps(request(self.call)).encode()
        self.files = [_memory_file(name) for name in ("request", "result", "stdout", "stderr")]
        position = 0
        while position < len(data):
            position += os.pwrite(self.files[0], data[position:], position)

    def close(self) -> None:
        """Let go of the files."""
        while self.files:
            os.close(self.files.pop())

    def land(self, ending: Ending) -> None:
        """Read the outcome and hand it to the caller; must run after the last process of the call is gone."""
        try:
            outcome: SandboxOutcome | None = read_outcome(self, ending)
        except Exception as error:
            outcome = failure(self.call, f"SandboxError: the outcome could not be read ({type(error).__name__})")
        finally:
            self.close()
        resolve(self.future, outcome)


def _memory_file(name: str) -> int:
    """A file without a name; on disk where the system has no other (unsafe mode only)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def resolve(future: concurrent.futures.Future[SandboxOutcome], outcome: SandboxOutcome | Exception | None) -> None:
    """Complete a future that its caller may have given up at the same moment."""
    try:
        if isinstance(outcome, SandboxOutcome):
            future.set_result(outcome)
        elif outcome is not None:
            future.set_exception(outcome)
    except concurrent.futures.InvalidStateError:
        return


def environment(call: SandboxCall) -> dict[str, str]:
    """Return the tool's whole environment; what would change the loader, Python or the proxy cannot be set."""
    found = {"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    found |= {name: str(value) for name, value in call.env.items() if _may_be_set(name, str(value))}
    found |= {"LETTA_AGENT_ID": call.agent_id, "LETTA_TOOL_ID": call.tool_id}
    return found | (dict.fromkeys(PROXY_VARIABLES, PROXY) if call.network else {})


def _may_be_set(name: str, value: str) -> bool:
    known = name.upper()
    if known.startswith(("LD_", "PYTHON")) or known.endswith("_PROXY"):
        return False
    text = name + value
    return bool(name) and "=" not in name and "\0" not in text and frame.SURROGATE.search(text) is None


def request(call: SandboxCall) -> dict[str, Any]:
    """Return what the child reads."""
    return {
        "source": call.source,
        "function": call.function,
        "arguments": dict(call.arguments),
        "environment": environment(call),
        "agent_id": call.agent_id,
        "agent_state": call.agent_state,
    }


def failure(call: SandboxCall, text: str, **rest: Any) -> SandboxOutcome:
    """Return the outcome of a call that failed; ``text`` is ``<ExceptionName>: <message>``."""
    error = f"Error executing function {call.function}: {text}"
    return SandboxOutcome(status="error", error=error[:LONGEST_ERROR], **rest)


def read_outcome(flight: Flight, ending: Ending) -> SandboxOutcome:
    """Read, check and redact what the call left."""
    call, limits = flight.call, flight.config.limits
    redact = redaction.redactor(call.secrets)
    _, result, stdout, stderr = flight.files
    rest: dict[str, Any] = {
        "stdout": frame.cut(redact(frame.output(stdout, limits.output)), limits.output),
        "stderr": frame.cut(redact(frame.output(stderr, limits.output)), limits.output),
        "seconds": time.monotonic() - flight.started,
    }
    text = _bad_end(flight, ending)
    content: dict[str, Any] | None = None
    if not text:
        content, text = _content(result, limits)
    if content is None or not content["ok"]:
        return failure(call, redact(text or _named(content)), **rest)
    value = redaction.redact_value(content["value"], redact)
    return SandboxOutcome(status="success", value=value, block_values=_blocks(call, content["blocks"], redact), **rest)


def _blocks(call: SandboxCall, changed: Mapping[str, str], redact: Any) -> dict[str, str]:
    """Changed blocks, of those that the tool was given."""
    state = call.agent_state or {}
    memory = state.get("memory") or state
    known = {block.get("label") for block in memory.get("blocks") or []}
    return {label: redact(value) for label, value in changed.items() if label in known}


def _named(content: dict[str, Any] | None) -> str:
    return f"{content['type']}: {content['message']}" if content else "ChildProcessError: exited without a result"


def _content(result: int, limits: Limits) -> tuple[dict[str, Any] | None, str]:
    try:
        return frame.parse(result, limits.result + 4096), ""
    except frame.BadFrame as error:
        return None, f"ValueError: {error}"


def _bad_end(flight: Flight, ending: Ending) -> str:
    """Say how the process ended when it did not end by itself with code 0."""
    if ending.failed:
        return f"ChildProcessError: {ending.failed}"
    if ending.ended == "timeout":
        return f"TimeoutError: the tool did not finish within {flight.timeout:g} seconds"
    if ending.ended:
        return "ChildProcessError: the call was cancelled"
    if ending.code < 0:
        memory = ", probably out of memory" if ending.code == -signal.SIGKILL else ""
        return f"ChildProcessError: the tool's process was ended by {_signal(-ending.code)}{memory}"
    if ending.code > 0:
        return f"ChildProcessError: the tool's process exited with code {ending.code} and without a result"
    return ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
