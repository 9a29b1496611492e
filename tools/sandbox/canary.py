"""Tries out a sandbox that has just been started: what must work works, what must fail fails."""

from __future__ import annotations

from pathlib import Path

from .base import SandboxCall
from .config import FULL, SandboxConfig
from .flight import Flight
from .link import Link

SOURCE = Path(__file__).with_name("canary_tool.py").read_text(encoding="utf-8")
TIMEOUT = 15.0


def try_out(link: Link, config: SandboxConfig) -> list[str]:
    """Return what is wrong with a running sandbox; empty when it may be used."""
    full = link.tier >= FULL
    programs = full and config.allow_subprocess
    arguments = {"hidden": list(config.hidden_paths), "own_files": full, "programs": programs}
    call = SandboxCall(id="canary", source=SOURCE, function="canary", arguments=arguments, timeout=TIMEOUT)
    flight = Flight(call, config)
    link.submit(flight)
    try:
        outcome = flight.future.result(TIMEOUT * 2)
    except TimeoutError:
        return ["the first call did not end"]
    if outcome.status != "success":
        return [outcome.error]
    return [str(item) for item in outcome.value]
