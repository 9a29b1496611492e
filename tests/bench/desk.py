"""How fast the desk's pages are with much behind them: ``python -m tests.bench.desk``, or ``measure()`` for a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.bench.child import child, in_child
from tests.bench.place import percentile

WAITING, DECIDED, ROUNDS = 10_000, 100_000, 40
PAGES = {
    "queue": "/approvals/",
    "queue_by_risk": "/approvals/?risk=low",
    "queue_by_tool": "/approvals/?tool=refund_order",
    "expiring": "/approvals/?view=expiring",
    "history": "/approvals/?view=history",
    "pulse": "/approvals/pulse/?newest=1&since=2026-01-01T00:00:00%2B00:00",
    "start": "/",
}
TARGETS = {f"{name}_p95_ms": "<= 150" for name in PAGES}


def measure() -> dict[str, float]:
    """Milliseconds of a page at the 95th percentile: ten thousand calls wait, a hundred thousand were decided."""
    return in_child("tests.bench.desk")


def measure_here() -> dict[str, float]:
    from django.conf import settings
    from django.test import Client

    from tests.agents.desk import person
    from tests.pages.rows import fill

    settings.ALLOWED_HOSTS = ["*"]
    fill(WAITING, DECIDED)
    client = Client()
    client.force_login(person())
    return {f"{name}_p95_ms": _p95(lambda path=path: client.get(path)) for name, path in PAGES.items()}  # type: ignore[misc]


def _p95(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        assert work().status_code == 200
        taken.append((time.perf_counter() - began) * 1000)
    return percentile(taken, 0.95)


def main() -> None:
    child(measure_here)
    for name, value in measure().items():
        print(f"{name:24} {value:10.1f}  {TARGETS[name]}")


if __name__ == "__main__":
    main()
