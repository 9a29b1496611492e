"""``manage.py sandbox_doctor``: starts the sandbox, tries every escape, prints how each went."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tools import sandbox
from tools.sandbox import SandboxConfig, SandboxUnavailable, escapes, probe
from tools.sandbox.runners import ZygoteRunner


class Command(BaseCommand):
    help = "Start the sandbox as the settings say, try to break out of it, and print the result."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tier", type=int, choices=(2, 3), help="look at this tier instead of the best one")

    def handle(self, *_args: Any, **options: Any) -> None:
        config = sandbox.from_settings()
        failed = examine(config, options["tier"], self.stdout.write)
        if failed:
            raise CommandError(f"{failed} attempts were not contained")


def examine(config: SandboxConfig, tier: int | None, say: Callable[[str], Any]) -> int:
    """Print tier and table; return how many attempts were not contained. Raises CommandError without a sandbox."""
    runner = _started(config, tier)
    try:
        say(f"tier {runner.tier.number} ({runner.tier.name})")
        say(f"missing: {', '.join(runner.tier.missing) or 'nothing'}")
        say(f"why: {runner.tier.why or 'the best there is'}")
        return _table(runner, say)
    finally:
        runner.stop()


def _started(config: SandboxConfig, tier: int | None) -> ZygoteRunner:
    if tier:
        config = dataclasses.replace(config, force_tier=tier, min_tier=min(tier, config.min_tier))
    try:
        runner = probe.start(config)
    except SandboxUnavailable as error:
        raise CommandError(str(error)) from error
    if not isinstance(runner, ZygoteRunner):
        raise CommandError("LETTAWEB_SANDBOX_UNSAFE is set: there is no sandbox to look at")
    return runner


def _table(runner: ZygoteRunner, say: Callable[[str], Any]) -> int:
    failed = 0
    for verdict in escapes.run_all(runner):
        failed += bool(verdict.wrong)
        say(f"{verdict.escape.name:<56} {verdict.seconds:6.2f} s  {verdict.wrong or 'contained'}")
    return failed
