"""The executor without HTTP: a process that takes runs and drives them until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand

from agents import executor
from lettaweb.lib import drain
from lettaweb.lib.db import close_pools

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Execute runs without serving HTTP. SIGTERM: take no new ones, end or hand over the others, then exit."

    def handle(self, **_options: Any) -> None:
        asyncio.run(_work())


async def _work() -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await executor.start("worker")
    log.info("working")
    await stop.wait()
    log.info("stopping", seconds=settings.LETTAWEB_DRAIN_SECONDS)
    drain.begin()
    await executor.drain(settings.LETTAWEB_DRAIN_SECONDS)
    close_pools()
