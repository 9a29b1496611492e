"""Finds the best tier that works on this machine and that the settings allow; never falls back in silence."""

from __future__ import annotations

import sys

from . import canary
from .base import SandboxUnavailable, Tier
from .config import FULL, LANDLOCK, SandboxConfig
from .link import Link, StartFailed
from .runners import Runner, ZygoteRunner
from .unsafe import UnsafeRunner

NAMES = {FULL: "full", LANDLOCK: "landlock"}
MISSING_IN_LANDLOCK = ("a /tmp for each call", "network through the proxy", "subprocesses")
FIX = {
    FULL: "allow unprivileged user namespaces (kernel.unprivileged_userns_clone=1, or an AppArmor profile with userns)",
    LANDLOCK: "use Linux 5.13 or later with Landlock and seccomp, and a Python that every user can read",
}


def start(config: SandboxConfig) -> Runner:
    """Return a runner that has been tried out; raises SandboxUnavailable, which names the fix."""
    if config.unsafe:
        return UnsafeRunner(config, Tier(0, "unsafe", "LETTAWEB_SANDBOX_UNSAFE is set", ("every protection",)))
    reasons: dict[int, str] = {}
    for number in (FULL, LANDLOCK):
        if config.force_tier not in (None, number) or number < config.min_tier:
            continue
        try:
            return _start_tier(config, number, reasons)
        except StartFailed as error:
            reasons[number] = str(error)
    raise SandboxUnavailable(_explain(config, reasons))


def _start_tier(config: SandboxConfig, number: int, reasons: dict[int, str]) -> ZygoteRunner:
    if not sys.platform.startswith("linux"):
        raise StartFailed(f"{sys.platform} has neither namespaces nor Landlock")
    if config.pip_policy != "deny":
        config.environments.mkdir(parents=True, exist_ok=True)
    link = Link(config, number)
    link.start()
    try:
        wrong = [] if config.without else canary.try_out(link, config)
    except BaseException:
        link.stop()
        raise
    if wrong:
        link.stop()
        raise StartFailed("; ".join(wrong))
    return ZygoteRunner(config, _tier(number, link, reasons), link)


def _tier(number: int, link: Link, reasons: dict[int, str]) -> Tier:
    missing = list(link.facts["missing"]) + (list(MISSING_IN_LANDLOCK) if number == LANDLOCK else [])
    why = [f"tier {worse}: {reason}" for worse, reason in reasons.items()]
    why += [f"{name} was not preloaded: {problem}" for name, problem in link.facts["problems"].items()]
    return Tier(number, NAMES[number], "; ".join(why), tuple(missing))


def _explain(config: SandboxConfig, reasons: dict[int, str]) -> str:
    tried = "; ".join(f"tier {number}: {reason}. To fix it, {FIX[number]}" for number, reason in reasons.items())
    wanted = f"LETTAWEB_SANDBOX_MIN_TIER is {config.min_tier}"
    return (
        f"Uploaded tools cannot run on this machine ({wanted}). {tried or 'No tier is allowed'}. "
        "For development only, LETTAWEB_SANDBOX_UNSAFE=1 runs them without protection."
    )
