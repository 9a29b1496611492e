"""System checks of the sandbox. Those that have to start it run under ``check --deploy`` only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from tools import sandbox
from tools.sandbox import SandboxConfig, Tier
from tools.sandbox.config import FULL, visible

Checks = Sequence[CheckMessage]
NO_TIER, VISIBLE, UNSAFE, BAD_PIP = "tools.E001", "tools.E002", "tools.E003", "tools.E004"
LESSER_TIER, AS_ROOT = "tools.W001", "tools.W002"


@register(Tags.security, deploy=True)
def check_tier(**_kwargs: Any) -> Checks:
    return tier_messages(sandbox.tier())


@register(Tags.security)
def check_visible(**_kwargs: Any) -> Checks:
    return visible_messages(sandbox.from_settings())


@register(Tags.security)
def check_unsafe(**_kwargs: Any) -> Checks:
    return unsafe_messages(sandbox.from_settings(), debug=settings.DEBUG)


@register(Tags.security)
def check_pip(**_kwargs: Any) -> Checks:
    policy = sandbox.from_settings().pip_policy
    if policy in ("deny", "allowlist", "any"):
        return []
    return [Error(f"LETTAWEB_SANDBOX_PIP is '{policy}'.", hint="deny, allowlist or any", id=BAD_PIP)]


@register(Tags.security, deploy=True)
def check_root(**_kwargs: Any) -> Checks:
    return root_messages(os.geteuid() if hasattr(os, "geteuid") else 1)


def tier_messages(tier: Tier) -> Checks:
    """What is said about a tier that is not the full one."""
    if tier.number == FULL:
        return []
    if tier.number == 0:
        return [Error("Uploaded tools cannot run here, or only without protection.", hint=tier.why, id=NO_TIER)]
    missing = ", ".join(tier.missing)
    return [Warning(f"The sandbox runs in tier {tier.number}, without: {missing}.", hint=tier.why, id=LESSER_TIER)]


def visible_messages(config: SandboxConfig) -> Checks:
    """What is said about private files that lie among those which tools can see."""
    hint = "Move it out of the folders of Python and of the system's libraries."
    return [Error(f"Uploaded tools could see {path}.", hint=hint, id=VISIBLE) for path in visible(config)]


def unsafe_messages(config: SandboxConfig, *, debug: bool) -> Checks:
    """What is said about the unsafe mode outside development."""
    if debug or not config.unsafe:
        return []
    hint = "LETTAWEB_SANDBOX_UNSAFE is for development: uploaded code can read every secret of this server."
    return [Error("Uploaded tools run without a sandbox, and DEBUG is off.", hint=hint, id=UNSAFE)]


def root_messages(user: int) -> Checks:
    """What is said about a server that runs as root."""
    if user != 0:
        return []
    hint = "Nothing here needs root; run it as a user of its own."
    return [Warning("The server runs as root.", hint=hint, id=AS_ROOT)]
