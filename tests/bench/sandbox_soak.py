"""Thousands of mixed calls from several threads: nothing may be left over, mixed up or leaked.

Run as ``python -m tests.bench.sandbox_soak [calls]``; the suite runs a short one.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tools.sandbox import SandboxCall, SandboxConfig, SandboxOutcome, census, probe
from tools.sandbox.flight import Flight
from tools.sandbox.runners import Runner, ZygoteRunner

CALLS, THREADS = 3000, 8
TIMEOUT = 0.3
# Of ten calls one meets its time limit and one crashes.
SOURCES = {
    "add": "def tool(n):\n    return n + 1",
    "print": "def tool(n):\n    print('x' * 200)\n    return n + 1",
    "raise": "def tool(n):\n    raise ValueError(n)",
    "files": "def tool(n):\n    open('/tmp/a', 'w').write('x' * 100000)\n    return n + 1",
    "threads": "import threading as t\ndef tool(n):\n    t.Thread(target=t.Event().wait).start()\n    return n + 1",
    "memory": "def tool(n):\n    return bytearray(1 << 34)",
    "async": "import asyncio\nasync def tool(n):\n    await asyncio.sleep(0.001)\n    return n + 1",
    "large": "def tool(n):\n    return 'x' * 200000",
    "timeout": "def tool(n):\n    while True:\n        pass",
    "crash": "import os, ctypes\ndef tool(n):\n    os._exit(3) if n % 2 else ctypes.string_at(0)",
}
EXPECTED = {
    "raise": "ValueError: ", "memory": "MemoryError: ", "timeout": "TimeoutError: ", "crash": "ChildProcessError: ",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it: wrong outcomes, processes and descriptors left over, how often the zygote was replaced."""

    wrong: list[str]
    left: list[int]
    descriptors: int
    restarts: int
    seconds: float


def _call(number: int) -> tuple[str, SandboxCall]:
    kind = list(SOURCES)[number % len(SOURCES)]
    timeout = TIMEOUT if kind == "timeout" else 20.0
    return kind, SandboxCall(
        id=str(number), source=SOURCES[kind], function="tool", arguments={"n": number}, timeout=timeout
    )


def _wrong(kind: str, number: int, outcome: SandboxOutcome) -> str:
    if kind in EXPECTED:
        right = outcome.status == "error" and f"tool: {EXPECTED[kind]}" in outcome.error
    else:
        right = outcome.value == ("x" * 200000 if kind == "large" else number + 1)
    return "" if right else f"{kind} {number}: {str(outcome)[:300]}"


def _one(runner: Runner, number: int) -> str:
    kind, call = _call(number)
    flight = Flight(call, runner.config)
    runner.submit(flight)
    return _wrong(kind, number, flight.future.result(120))


def soak(runner: ZygoteRunner, calls: int) -> Report:
    """Run ``calls`` mixed calls from eight threads."""
    process, before = runner.link.process, len(os.listdir("/proc/self/fd"))
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
        wrong = list(filter(None, threads.map(lambda number: _one(runner, number), range(calls))))
    seconds = time.monotonic() - begun
    left = census.left_over(runner.link, 5)
    descriptors = len(os.listdir("/proc/self/fd")) - before
    return Report(wrong, left, descriptors, int(runner.link.process is not process), seconds)


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    with tempfile.TemporaryDirectory() as folder:
        runner = probe.start(SandboxConfig(data_dir=Path(folder)))
        assert isinstance(runner, ZygoteRunner)
        report = soak(runner, calls)
        runner.stop()
    print(f"tier {runner.tier.number}, {calls} calls, {THREADS} threads, {report.seconds:.1f} s")
    print(f"wrong {len(report.wrong)}, processes left {len(report.left)}, descriptors {report.descriptors:+d}, "
          f"restarts {report.restarts}")  # fmt: skip
    for kind, count in Counter(text.partition(" ")[0] for text in report.wrong).items():
        print(f"  {kind}: {count}, e.g. {next(text for text in report.wrong if text.startswith(kind))}")
    sys.exit(bool(report.wrong or report.left or report.restarts or report.descriptors > 0))


if __name__ == "__main__":
    main()
