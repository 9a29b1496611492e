"""The first tool that every sandbox runs: returns what it could do but must not. Runs inside only."""

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any


def _possible(action: Callable[[], Any]) -> bool:
    with contextlib.suppress(OSError):
        action()
        return True
    return False


def _seen(path: str) -> bool:
    """Whether a file can be read, or a folder lists anything."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            return any(_readable(os.path.join(path, name)) for name in os.listdir(path))
        return _readable(path)
    return False


def _readable(path: str) -> bool:
    return os.path.isfile(path) and _possible(lambda: os.close(os.open(path, os.O_RDONLY)))


def canary(hidden: list[str], own_files: bool, programs: bool) -> list[str]:
    """Return what is wrong, as texts for the operator."""
    wrong = [f"{path} is visible" for path in hidden if _seen(path)]
    forbidden: dict[str, Callable[[], Any]] = {
        "sockets can be opened": lambda: socket.socket(socket.AF_INET).close(),
        "programs can be started": lambda: os.execv("/bin/true", ["true"]),
        "other processes can be signalled": lambda: os.kill(os.getppid() or 2, 0),
        "files can be written outside /tmp": lambda: open("/usr/lib/written", "w").close(),
        "the password file is the host's": lambda: open("/etc/shadow").close(),
    }
    if programs:
        del forbidden["programs can be started"], forbidden["other processes can be signalled"]
    wrong += [text for text, action in forbidden.items() if _possible(action)]
    if own_files and not _possible(lambda: open("/tmp/own", "w").close()):
        wrong.append("/tmp cannot be written")
    return wrong
