"""Every attempt to break out fails, leaves no process and leaves the zygote alive; in every tier, for every user."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.sandbox.calls import unavailable
from tests.tools.sandbox.conftest import ROOT, started
from tools.sandbox import SandboxConfig, escapes
from tools.sandbox.runners import ZygoteRunner

FULL = [escape for escape in escapes.ESCAPES if 3 in escape.tiers]
WITH_FILTER = [escape for escape in escapes.ESCAPES if escape.needs_seccomp]
ATTEMPTS_AS_USER = Path(__file__).with_name("attempts_as_user.py")
NOBODY = 65534
PYTHONS = ("/usr/local/bin/python3", "/usr/bin/python3")


@pytest.fixture(scope="session")
def facts() -> Iterator[dict[str, Any]]:
    with escapes.surroundings() as found:
        yield found


@pytest.fixture(scope="module")
def unfiltered(config: SandboxConfig) -> Iterator[ZygoteRunner]:
    runner = started(dataclasses.replace(config, without=frozenset({"seccomp"})))
    yield runner
    runner.stop()


@pytest.mark.parametrize("escape", FULL, ids=lambda escape: escape.name)
def test_it_contains(escape: escapes.Escape, full: ZygoteRunner, facts: dict[str, Any]) -> None:
    assert escapes.attempt(escape, full, facts).wrong == ""


@pytest.mark.parametrize("escape", WITH_FILTER, ids=lambda escape: escape.name)
def test_it_would_notice_a_missing_filter(
    escape: escapes.Escape, unfiltered: ZygoteRunner, facts: dict[str, Any]
) -> None:
    assert escapes.attempt(escape, unfiltered, facts).wrong != ""


@pytest.mark.parametrize("tier", [3, 2])
def test_it_contains_them_for_an_ordinary_user(tier: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdicts = _as_user(tier)
    assert len(verdicts) == sum(tier in escape.tiers for escape in escapes.ESCAPES)
    assert {name: wrong for name, wrong in verdicts.items() if wrong} == {}


def _as_user(tier: int) -> dict[str, str]:
    """Run the list in a process of nobody's when we are root, else of our own."""
    python = _python()
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [python, "-B", str(ATTEMPTS_AS_USER), str(ROOT), str(tier)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "DATABASE_URL": "postgres://SERVER-MARK-00000000000000aa"},
        **user,  # type: ignore[call-overload]
    )
    if done.returncode == 77:
        unavailable(done.stdout)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _python() -> str:
    found = [python for python in PYTHONS if shutil.which(python) and _new_enough(python)]
    return found[0] if found else unavailable("no Python that every user can run")


def _new_enough(python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", code], check=False).returncode == 0
