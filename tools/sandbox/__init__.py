"""The sandbox: the only place where uploaded tools run. Nothing outside this package starts them."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from . import config as configuration
from . import environments, probe
from .base import SandboxCall, SandboxOutcome, SandboxUnavailable, Tier
from .config import Limits, SandboxConfig, from_settings
from .flight import Flight, failure
from .runners import Runner

__all__ = [
    "Limits",
    "SandboxCall",
    "SandboxConfig",
    "SandboxOutcome",
    "SandboxUnavailable",
    "Tier",
    "from_settings",
    "known_tier",
    "run",
    "run_blocking",
    "start",
    "stop",
    "tier",
]

ASK_AGAIN_AFTER = 5.0  # seconds in which a machine that could not run tools is not asked again

_lock = threading.Lock()
_runner: Runner | None = None
_config: SandboxConfig | None = None
_refused: tuple[float, str] | None = None


def start(config: SandboxConfig) -> None:
    """Start the sandbox, in place of one that runs; raises SandboxUnavailable when no tier that is allowed works."""
    global _runner, _config, _refused
    with _lock:
        if _runner is not None:
            _runner.stop()
        _runner, _config, _refused = None, config, None
        _runner = probe.start(config)


def stop() -> None:
    """End the sandbox and every call in it; the next call starts it again with the settings."""
    global _runner, _config
    with _lock:
        if _runner is not None:
            _runner.stop()
        _runner = _config = None


def _running() -> Runner:
    """Return the sandbox, started now if it was not (or has died for good)."""
    global _runner, _config, _refused
    with _lock:
        if _runner is not None and _runner.alive:
            return _runner
        if _refused is not None and time.monotonic() - _refused[0] < ASK_AGAIN_AFTER:
            raise SandboxUnavailable(_refused[1])
        _config = _config or configuration.from_settings()
        try:
            _runner, _refused = probe.start(_config), None
        except SandboxUnavailable as error:
            _refused = (time.monotonic(), str(error))
            raise
        return _runner


def tier() -> Tier:
    """Return which tier runs and what is missing there; number 0 when none does. Starts the sandbox."""
    try:
        return _running().tier
    except SandboxUnavailable as error:
        return Tier(0, "none", str(error))


def known_tier() -> dict[str, int | str] | None:
    """Return number and name of the running tier for those who must not start it, None when nothing runs."""
    runner = _runner
    return None if runner is None else {"tier": runner.tier.number, "name": runner.tier.name}


def _prepare(call: SandboxCall) -> tuple[Runner, Flight]:
    """Everything before the call that may take its time."""
    runner = _running()
    return runner, Flight(call, runner.config, environments.ensure(call.pip_requirements, runner.config))


async def run(call: SandboxCall) -> SandboxOutcome:
    """Run a tool from any asyncio loop; cancelling the task ends the call. Raises SandboxUnavailable."""
    try:
        quick = _runner is not None and _runner.alive and not call.pip_requirements
        runner, flight = _prepare(call) if quick else await asyncio.to_thread(_prepare, call)
    except environments.RequirementsRefused as error:
        return failure(call, f"{type(error).__name__}: {error}")
    runner.submit(flight)
    try:
        return await asyncio.wrap_future(flight.future)
    except asyncio.CancelledError:
        runner.end(flight)
        raise


def run_blocking(call: SandboxCall) -> SandboxOutcome:
    """Run a tool and wait for it, from a thread without an event loop. Raises SandboxUnavailable."""
    try:
        runner, flight = _prepare(call)
    except environments.RequirementsRefused as error:
        return failure(call, f"{type(error).__name__}: {error}")
    runner.submit(flight)
    try:
        return flight.future.result()
    except BaseException:
        runner.end(flight)
        raise


def _forget_after_fork() -> None:
    """A forked process has no sandbox: the one that it has copied belongs to its parent."""
    global _runner, _config, _lock
    if _runner is not None:
        _runner.forget()
    _lock, _runner, _config = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
