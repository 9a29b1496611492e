"""Decisions that meet: whatever the database, each call is decided once and each set goes on once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import databases

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 6
EXPECTED = {
    "same_call": "won 409, 1 run, 1 decision",
    "double_click": "won won, 1 run, 1 decision",
    "last_two": "won won, 1 said so, 1 run",
    "clock_and_person": "1 run, 1 decision",
    "many_and_many": "12 won, 12 lost, 12 runs, 12 decisions",
}


def raced(folder: Path, **environment: str) -> dict[str, dict[str, int]]:
    unwanted = ("LETTAWEB_", "DATABASE_URL", "REDIS_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    variables = {
        **kept, "DJANGO_SETTINGS_MODULE": "lettaweb.settings", "LETTAWEB_DATA_DIR": str(folder), **environment,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.races", str(ROUNDS)],
        cwd=ROOT, env=variables, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture
def postgresql() -> Iterator[str]:
    if not databases.reachable():
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL cannot be reached")
        pytest.skip("PostgreSQL cannot be reached")
    url = databases.create()
    yield url
    databases.drop(url)


def test_it_decides_once_on_sqlite(tmp_path: Path) -> None:
    assert raced(tmp_path) == {name: {outcome: ROUNDS} for name, outcome in EXPECTED.items()}


@pytest.mark.postgresql
def test_it_decides_once_on_postgresql(tmp_path: Path, postgresql: str) -> None:
    found = raced(tmp_path, DATABASE_URL=postgresql)
    assert found == {name: {outcome: ROUNDS} for name, outcome in EXPECTED.items()}
