"""Rates, counted in memory and per process: requests a minute by caller."""

from __future__ import annotations

import threading
import time

from django.conf import settings

from lettaweb.lib.problems import Problem

_lock = threading.Lock()
_minute = 0
_counts: dict[str, int] = {}


def count(caller: str) -> None:
    """Count a request of ``caller``; a :class:`Problem` 429 above LETTAWEB_THROTTLE a minute (0: no limit)."""
    limit = settings.LETTAWEB_THROTTLE
    if limit and _add(caller) > limit:
        wait = 60 - int(time.monotonic() % 60)
        raise Problem(429, "Too many requests.", headers={"Retry-After": str(wait)})


def _add(caller: str) -> int:
    global _minute
    with _lock:
        minute = int(time.monotonic() // 60)
        if minute != _minute:
            _minute = minute
            _counts.clear()
        _counts[caller] = _counts.get(caller, 0) + 1
        return _counts[caller]
