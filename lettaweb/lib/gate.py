"""The write gate: one writer at a time over all processes, each in its turn.

SQLite has one writer; a waiter polls for the lock, so a bulk writer that comes back at once starves all
others. The gate is two file locks. Who wants to write first takes the *turn*, then the *gate*, then gives
the turn back: while a writer works, the next one already holds the turn, and the bulk writer stands behind
it. Locks belong to an open file, not to a process: two threads of one process exclude each other as well,
and a killed process leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time

_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.002
_local_turns: dict[str, threading.Lock] = {}


class GateClosed(Exception):
    """The gate was not reached in time."""


class Gate:
    """One connection's way to the write lock of ``path``; not for use by two threads at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.held = False
        self._owner = 0
        self._turn = self._gate = -1
        # Threads of this process queue in memory, so that only one of them polls the files.
        self._local_turn = _local_turns.setdefault(path, threading.Lock())

    def acquire(self, timeout: float) -> None:
        """Take the gate within ``timeout`` seconds; raises :class:`GateClosed`."""
        deadline = time.monotonic() + timeout
        self._open()
        if not self._local_turn.acquire(timeout=timeout):
            raise GateClosed
        try:
            _lock(self._turn, deadline)
            try:
                _lock(self._gate, deadline)
            finally:
                fcntl.flock(self._turn, fcntl.LOCK_UN)
        finally:
            self._local_turn.release()
        self.held = True

    def release(self) -> None:
        if self.held:
            self.held = False
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        self.held = False
        for descriptor in (self._gate, self._turn):
            if descriptor >= 0:
                os.close(descriptor)
        self._turn = self._gate = -1

    def _open(self) -> None:
        # A forked child shares its parent's open files, and with them the parent's locks: it opens its own.
        if self._owner == os.getpid() and self._gate >= 0:
            return
        self.close()
        self._owner = os.getpid()
        self._gate = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._turn = os.open(f"{self.path}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(descriptor: int, deadline: float) -> None:
    pause = _FIRST_PAUSE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise GateClosed from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _after_fork() -> None:
    for path in _local_turns:
        _local_turns[path] = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
