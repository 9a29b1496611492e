"""How many rows go into one write transaction: as many as take a few milliseconds of work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

TARGET = 0.015  # seconds
SMALLEST, FIRST, LARGEST = 4, 16, 250


class Pace:
    """The size of the next chunk, after how long the last ones took."""

    def __init__(self) -> None:
        self.size = FIRST

    @contextmanager
    def transaction(self, count: int) -> Iterator[None]:
        """A transaction for ``count`` rows; the time in it sets the next size."""
        with transaction.atomic():
            began = time.thread_time()  # its own work: on a busy machine smaller chunks would only cost more
            yield
            took = max(time.thread_time() - began, 1e-6)
        wanted = int(count * TARGET / took)
        self.size = max(SMALLEST, min(LARGEST, wanted, 2 * self.size))
