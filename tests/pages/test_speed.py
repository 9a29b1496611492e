"""The desk with ten thousand waiting and a hundred thousand decided calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.pages.rows import fill

LIMIT = 0.15  # seconds of this process's own time: the machine may do something else meanwhile
PATHS = (
    "/approvals/",
    "/approvals/?risk=low",
    "/approvals/?view=expiring",
    "/approvals/?view=history",
    "/approvals/?tool=refund_order",
    "/approvals/pulse/?newest=1&since=2026-01-01T00:00:00%2B00:00",
    "/",
)


TRIES = 3  # a page that is slow is slow every time; a machine that is busy is not


def least(work: Callable[[], Any]) -> float:
    """The 95th percentile of the first try that is quick enough, else of the best one."""
    found: list[float] = []
    while len(found) < TRIES and (not found or found[-1] > LIMIT):
        found.append(p95(work))
    return min(found)


def p95(work: Callable[[], Any], rounds: int = 20) -> float:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return sorted(taken)[int(rounds * 0.95) - 1]


@pytest.mark.slow
def test_it_is_quick_whatever_waits_and_was_decided(operator: Client) -> None:
    fill(10_000, 100_000)
    for path in PATHS:
        operator.get(path)
    measured = {path: least(lambda where=path: operator.get(where)) for path in PATHS}  # type: ignore[misc]
    assert {path: seconds for path, seconds in measured.items() if seconds > LIMIT} == {}
    print({path: round(seconds * 1000) for path, seconds in measured.items()})
