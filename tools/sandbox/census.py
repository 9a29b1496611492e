"""Which processes the sandbox has, seen from outside."""

from __future__ import annotations

import contextlib
import os
import time

from .inside.zygote import SPARES
from .link import Link


def _parents() -> dict[int, int]:
    """Return the parent of every process that is no zombie."""
    found = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found[int(name)] = int(fields[1])
    return found


def descendants(pid: int) -> list[int]:
    """Return the processes below ``pid``."""
    parents = _parents()
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for child, parent in parents.items() if parent in level]
        found += level
    return found


def left_over(link: Link, patience: float) -> list[int]:
    """Return the processes that are neither zygote nor spare, after waiting ``patience`` seconds for their end."""
    deadline = time.monotonic() + patience
    while True:
        alive = descendants(link.process.pid) if link.process else []
        if len(alive) <= 1 + SPARES:
            return []
        if time.monotonic() > deadline:
            return alive[1 + SPARES :]
        time.sleep(0.01)
