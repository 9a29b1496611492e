"""How a process without an event loop learns that it is to end."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress


class Stop:
    """What ``threading.Event`` is to threads, for signals.

    A signal's handler runs in the middle of what the main thread is doing, also of a handler: it must wait for no
    lock, as that of an event, which the code it interrupts may hold. So a flag says it and a pipe wakes who waits.
    """

    def __init__(self) -> None:
        self._set = False
        self._reading, self._writing = os.pipe()
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)

    def at_signals(self) -> None:
        """Let SIGTERM and SIGINT set it from now on; call it in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self.set())

    def set(self) -> None:
        self._set = True
        with suppress(BlockingIOError):  # full: whoever waits is awake
            os.write(self._writing, b"!")

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``, not longer than until it is set; whether it is."""
        if not self._set and select.select([self._reading], [], [], seconds)[0]:
            os.read(self._reading, 4096)  # a fork that has our handler yet may have written as well
        return self._set
