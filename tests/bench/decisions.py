"""How many decisions a second are stored: ``python -m tests.bench.decisions``, or ``measure()`` for a table.

The child process works on a fresh database of its own, set up as a server's.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.place import database

ROOT = Path(__file__).resolve().parents[2]
BULK, SINGLE = 1000, 200
TARGETS = {"bulk_rows_per_second": ">= 500", "single_per_second": ">= 50", "longest_transaction_ms": "<= 20"}


def measure() -> dict[str, float]:
    """Return bulk_rows_per_second, single_per_second, median_ and longest_transaction_ms of a bulk decision."""
    with tempfile.TemporaryDirectory() as folder, database() as chosen:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("LETTAWEB_", "DATABASE_"))
        }
        environment |= {"LETTAWEB_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "lettaweb.settings", **chosen}
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.decisions", "child"],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


def _measure_here() -> dict[str, float]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from agents.actions import desk
    from agents.actions.desk import many, together
    from tests.agents.desk import item, person
    from tests.agents.desk import many as many_calls

    user = person()
    bulk, single = many_calls(BULK), many_calls(SINGLE)
    took: list[float] = []

    def stored(*given: Any) -> together.Stored:
        began = time.perf_counter()
        done = together.store(*given)
        took.append(time.perf_counter() - began)
        return done

    many.store = stored  # type: ignore[assignment]
    began = time.perf_counter()
    results = desk.decide_many([item(call) for call in bulk], desk.approve(), user=user)
    bulk_seconds = time.perf_counter() - began
    assert all(result.status == "done" for result in results)
    began = time.perf_counter()
    for call in single:
        desk.decide(call.uuid, desk.approve(), version=1, digest=call.digest, user=user)
    single_seconds = time.perf_counter() - began
    return {
        "bulk_rows_per_second": BULK / bulk_seconds,
        "single_per_second": SINGLE / single_seconds,
        "median_transaction_ms": statistics.median(took) * 1000,
        "longest_transaction_ms": max(took) * 1000,
    }


def main() -> None:
    if sys.argv[1:] == ["child"]:
        print(json.dumps(_measure_here()))
    else:
        for name, value in measure().items():
            print(f"{name:24} {value:10.1f}  {TARGETS.get(name, '')}")


if __name__ == "__main__":
    main()
