"""What a process gets ready once it serves: the SDKs of its providers, and the sandbox of its tools.

Both take seconds of CPU, so they come after the start, in a thread; whoever needs them sooner waits for them.
"""

from __future__ import annotations

import threading

import structlog

from agents import providers
from lettaweb.lib import collector
from tools import sandbox

log = structlog.get_logger(__name__)


def warm_up() -> None:
    """Begin to get ready; returns at once."""
    threading.Thread(target=_get_ready, name="warm-up", daemon=True).start()


async def cool_down() -> None:
    """Close the providers' clients and end the sandbox."""
    sandbox.stop()
    await providers.close_all()


def _get_ready() -> None:
    tier = sandbox.tier()
    if tier.number == 0:
        log.warning("no_sandbox", reason=tier.why)
    providers.warm()
    collector.spare()
