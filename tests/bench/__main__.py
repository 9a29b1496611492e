"""Every measurement in one table: ``python -m tests.bench [name …]``; also writes bench.json."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.servers import ROOT

NAMES = ("process", "messages", "streams", "readers", "lists", "decisions", "sandbox", "batches")
PACKAGES = ("Django", "daphne", "channels", "djangorestframework", "anthropic", "openai", "psycopg")
Figures = dict[str, float]
LIMIT = re.compile(r"(<=|>=|==)\s*([\d.]+)")


def main() -> None:
    names = [name for name in sys.argv[1:] or NAMES if find_spec(f"tests.bench.{name}")]
    found: dict[str, Any] = {"of": _circumstances(), "figures": {}, "failed": {}}
    for name in names:
        _measure(name, found)
        Path("bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if found["failed"] else 0)


def _measure(name: str, found: dict[str, Any]) -> None:
    module, begun = import_module(f"tests.bench.{name}"), time.monotonic()
    targets: Mapping[str, str] = getattr(module, "TARGETS", {})
    try:
        figures = dict(_flat(module.measure()))
    except Exception as error:  # one measurement that fails does not hide the others
        found["failed"][name] = str(error)[:500]
        print(f"{name:<12} failed: {str(error)[:200]}")
        return
    found["figures"][name] = figures
    for key, value in figures.items():
        print(f"{name:<12} {key:<34} {value:12.2f}   {_verdict(value, targets.get(key, ''))}", flush=True)
    print(f"{name:<12} {'(seconds to measure)':<34} {time.monotonic() - begun:12.1f}", flush=True)


def _flat(found: Any) -> Iterator[tuple[str, float]]:
    """Figures by name; of a list of rows, each with its first value in the name."""
    if isinstance(found, Mapping):
        yield from ((str(key), float(value)) for key, value in found.items() if isinstance(value, int | float))
        return
    for row in found:
        first, *rest = row.items()
        yield from ((f"{key} at {first[1]:g}", float(value)) for key, value in rest if isinstance(value, int | float))


def _verdict(value: float, target: str) -> str:
    limit = LIMIT.fullmatch(target)
    if limit is None:
        return f"target {target}" if target else ""
    sign, bound = limit[1], float(limit[2])
    good = value <= bound if sign == "<=" else value >= bound if sign == ">=" else value == bound
    return f"target {target}   {'ok' if good else 'MISSED'}"


def _circumstances() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "machine": {"cpus": os.cpu_count(), "processor": _processor(), "system": platform.platform()},
        "load_before": os.getloadavg(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    main()
