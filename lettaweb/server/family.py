"""How a child process learns that its parent is gone: the end of a pipe, and a signal as a second belt."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

PARENT_PIPE = "LETTAWEB_PARENT_PIPE"
_PR_SET_PDEATHSIG = 1


def watch_parent(seconds: float) -> None:
    """Send this process SIGTERM when its supervisor ends, however it ended; after ``seconds`` more SIGKILL
    to its whole group.

    Does nothing in a process that no supervisor started.
    """
    text = os.environ.pop(PARENT_PIPE, "")
    if not text:
        return
    os.set_inheritable(int(text), False)
    ask_for_signal(signal.SIGTERM)
    threading.Thread(target=_wait, args=(int(text), seconds), name="parent", daemon=True).start()


def ask_for_signal(number: signal.Signals) -> None:
    """Let the kernel send ``number`` when the thread that forked this process ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number))


def bind_forks() -> None:
    """Every process that this one forks from now on dies with the one that forked it."""
    os.register_at_fork(before=_remember_parent, after_in_child=_die_with_parent)


_forking = 0


def _remember_parent() -> None:
    global _forking
    _forking = os.getpid()


def _die_with_parent() -> None:
    ask_for_signal(signal.SIGKILL)
    if os.getppid() != _forking:  # it died before the kernel was asked
        os._exit(1)


def _wait(descriptor: int, seconds: float) -> None:
    while os.read(descriptor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds)
    kill_group(os.getpid())


def kill_group(leader: int) -> None:
    """SIGKILL to the group that ``leader`` leads; nothing when there is none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def start_pipe() -> tuple[int, int, Callable[[], None]]:
    """(read end for children, write end, close both)."""
    reading, writing = os.pipe()

    def close() -> None:
        for descriptor in (reading, writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    return reading, writing, close
