"""Every measurement in one table: ``python -m tests.bench [name …]``; also writes bench.json.

Once on SQLite and, where there is one, again on PostgreSQL (DATABASE_URL, or the server of the tests).
"""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests import databases
from tests.servers import ROOT

NAMES = ("process", "messages", "streams", "readers", "lists", "decisions", "desk", "sandbox", "batches")
PACKAGES = ("Django", "daphne", "channels", "djangorestframework", "anthropic", "openai", "psycopg")
ONCE = ("sandbox", "batches")  # those have no database, or one of their own
Figures = dict[str, dict[str, dict[str, float]]]
LIMIT = re.compile(r"(<=|>=|==)\s*([\d.]+)")


def main() -> None:
    names = sys.argv[1:] or NAMES
    postgresql = databases.server_url() if databases.reachable() else ""
    found: dict[str, Any] = {"of": _circumstances(postgresql), "figures": {}, "failed": {}}
    for name in names:
        for kind, url in {"sqlite": "", "postgresql": postgresql}.items():
            if kind == "sqlite" or (url and name not in ONCE):
                os.environ["DATABASE_URL"] = url
                _measure(name, kind, found)
                Path("bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _print_table(found)
    sys.exit(1 if found["failed"] else 0)


def _measure(name: str, kind: str, found: dict[str, Any]) -> None:
    module, begun = import_module(f"tests.bench.{name}"), time.monotonic()
    try:
        figures = dict(_flat(module.measure()))
    except Exception as error:  # one measurement that fails does not hide the others
        found["failed"][f"{name} on {kind}"] = str(error)[:500]
        return
    finally:
        print(f"{name} on {kind}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    found["figures"].setdefault(name, {})[kind] = figures


def _print_table(found: Mapping[str, Any]) -> None:
    print(json.dumps(found["of"], indent=1))
    print(f"{'':<48} {'SQLite':>12} {'PostgreSQL':>12}")
    figures: Figures = found["figures"]
    for name, kinds in figures.items():
        targets: Mapping[str, str] = getattr(import_module(f"tests.bench.{name}"), "TARGETS", {})
        for key in kinds.get("sqlite") or kinds["postgresql"]:
            both = [kinds.get(kind, {}).get(key) for kind in ("sqlite", "postgresql")]
            shown = " ".join(f"{'' if value is None else f'{value:.2f}':>12}" for value in both)
            print(f"{name:<12} {key:<35} {shown}   {_verdict(both, targets.get(key, ''))}")
    for name, error in found["failed"].items():
        print(f"{name} failed: {error[:200]}")


def _flat(found: Any) -> Iterator[tuple[str, float]]:
    """Figures by name; of a list of rows, each with its first value in the name."""
    if isinstance(found, Mapping):
        yield from ((str(key), float(value)) for key, value in found.items() if isinstance(value, int | float))
        return
    for row in found:
        first, *rest = row.items()
        yield from ((f"{key} at {first[1]:g}", float(value)) for key, value in rest if isinstance(value, int | float))


def _verdict(values: Sequence[float | None], target: str) -> str:
    limit = LIMIT.fullmatch(target)
    if limit is None:
        return f"target {target}" if target else ""
    good = all(value is None or _holds(value, limit[1], float(limit[2])) for value in values)
    return f"target {target}   {'ok' if good else 'MISSED'}"


def _holds(value: float, sign: str, bound: float) -> bool:
    return value <= bound if sign == "<=" else value >= bound if sign == ">=" else value == bound


def _circumstances(postgresql: str) -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "machine": {"cpus": os.cpu_count(), "processor": _processor(), "system": platform.platform()},
        "load_before": os.getloadavg(),
        "versions": {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "postgresql": str(databases.say("SHOW server_version")[0][0]) if postgresql else "",
            **{name: version(name) for name in PACKAGES},
        },
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    main()
