"""How long a call takes: ``python -m tests.bench.sandbox``, or ``measure()`` for a table of benchmarks."""

from __future__ import annotations

import concurrent.futures
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tools.sandbox import SandboxCall, SandboxConfig, probe
from tools.sandbox.flight import Flight
from tools.sandbox.link import executable
from tools.sandbox.runners import Runner

SOURCE = "def add(a: int, b: int) -> int:\n    return a + b\n"
ROUNDS, CALLERS, BURST, PLAIN_ROUNDS = 200, 8, 400, 15
TARGETS = {"p50_ms": "<= 15", "calls_per_second": ">= 150", "ratio_to_subprocess": "<= 0.2"}


def _add(runner: Runner) -> float:
    """Seconds of one call."""
    begun = time.perf_counter()
    call = SandboxCall(id="bench", source=SOURCE, function="add", arguments={"a": 1, "b": 2})
    flight = Flight(call, runner.config)
    runner.submit(flight)
    outcome = flight.future.result(30)
    assert outcome.value == 3, outcome
    return time.perf_counter() - begun


def _plain() -> float:
    """Seconds of the same sum in a fresh ``python -I`` that reads and writes JSON."""
    code = f"import json, sys\n{SOURCE}\nprint(json.dumps(add(**json.loads(sys.argv[1]))))"
    begun = time.perf_counter()
    done = subprocess.run([executable(), "-I", "-c", code, '{"a": 1, "b": 2}'], capture_output=True, check=True)
    assert done.stdout == b"3\n"
    return time.perf_counter() - begun


def measure() -> dict[str, float]:
    """Return p50_ms of one call, calls_per_second with eight callers, and ratio_to_subprocess (of the medians)."""
    with tempfile.TemporaryDirectory() as folder:
        runner = probe.start(SandboxConfig(data_dir=Path(folder)))
        try:
            for _ in range(20):
                _add(runner)
            middle = statistics.median(_add(runner) for _ in range(ROUNDS))
            begun = time.perf_counter()
            with concurrent.futures.ThreadPoolExecutor(CALLERS) as threads:
                list(threads.map(lambda _: _add(runner), range(BURST)))
            rate = BURST / (time.perf_counter() - begun)
        finally:
            runner.stop()
    plain = statistics.median(_plain() for _ in range(PLAIN_ROUNDS))
    return {"p50_ms": middle * 1000, "calls_per_second": rate, "ratio_to_subprocess": middle / plain}


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<22} {value:8.2f}   target {TARGETS[name]}")


if __name__ == "__main__":
    main()
