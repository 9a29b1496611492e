"""One cycle of the batch poller by hand: every open batch is looked at, whenever it was looked at last."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from batches.models import BatchJob, JobStatus
from batches.poll import cycle, lease


class Command(BaseCommand):
    help = "Run one cycle of the batch poller now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for another poller")

    def handle(self, *, wait: float, **_options: Any) -> None:
        end = time.monotonic() + wait
        while not self._poll():
            if time.monotonic() > end:
                raise CommandError("Another process is polling; it will find new work by itself.")
            time.sleep(0.2)
        running = BatchJob.objects.filter(status=JobStatus.RUNNING).count()
        self.stdout.write(f"polled; {running} job{'' if running == 1 else 's'} running")

    def _poll(self) -> bool:
        with lease.hold() as held:
            if held is None:
                return False
            cycle(held, seconds=float("inf"), by_hand=True)
            return True
