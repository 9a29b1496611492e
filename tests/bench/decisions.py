"""How many decisions a second are stored: ``python -m tests.bench.decisions``, or ``measure()`` for a table.

The child process works on a fresh database of its own, set up as a server's.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from tests.bench.child import child, in_child

BULK, SINGLE = 1000, 200
TARGETS = {"bulk_rows_per_second": ">= 500", "single_per_second": ">= 50", "longest_transaction_ms": "<= 20"}


def measure() -> dict[str, float]:
    """Return bulk_rows_per_second, single_per_second, median_ and longest_transaction_ms of a bulk decision."""
    return in_child("tests.bench.decisions")


def measure_here() -> dict[str, float]:
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
    child(measure_here)
    for name, value in measure().items():
        print(f"{name:24} {value:10.1f}  {TARGETS.get(name, '')}")


if __name__ == "__main__":
    main()
