"""Where tests break the server: named points at which a process kills itself, waits or fails. Off unless asked.

LETTAWEB_FAULTS names a directory. A process that reaches the point ``name`` and finds a file of that name in it
takes the file away and does the word in it: ``kill`` (SIGKILL to itself), ``stop`` (SIGSTOP to itself),
``wait`` (until ``name.go`` is there), ``fail`` (a database error), ``flaky`` (a database error at every second
arrival until the directory is cleared; ``name.hits`` grows by a byte each time).
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from django.db import OperationalError

_directory = os.environ.get("LETTAWEB_FAULTS", "")


def reach(name: str) -> None:
    """The process is at the point ``name``; nothing happens unless a test put a file there."""
    if not _directory:
        return
    armed, taken = Path(_directory) / name, Path(_directory) / f"{name}.hit"
    try:
        armed.rename(taken)
    except FileNotFoundError:
        _calm(armed)
        return
    _do(taken.read_text().strip(), armed.with_name(f"{name}.go"))


def _calm(armed: Path) -> None:
    """This arrival passes; a flaky point breaks at the next."""
    with suppress(FileNotFoundError):
        armed.with_name(f"{armed.name}.calm").rename(armed)


def _do(word: str, go_on: Path) -> None:
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif word == "wait":
        while not go_on.exists():
            time.sleep(0.01)
    elif word == "flaky":
        with go_on.with_suffix(".hits").open("a") as hits:
            hits.write(".")
        go_on.with_suffix(".calm").write_text(word)
        raise OperationalError("database is locked: a test wanted it so")
    elif word == "fail":
        raise OperationalError("database is locked: a test wanted it so")
