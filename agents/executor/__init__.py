"""Who runs the runs: detached tasks on the event loop of this process, each under a lease.

A run's lease is its process's beat. Whatever this process does for a run carries the epoch at which it
took the run; when the epoch has moved on, the work stops by itself.
"""

from agents.executor.pool import Pool, pool
from agents.executor.process import process_id
from agents.executor.warm import cool_down, warm_up
from agents.executor.watch import watch

stop = watch.stop


async def start(kind: str = "web") -> None:
    """Join the processes that execute runs, and get ready what runs need."""
    await watch.start(kind)
    warm_up()


async def drain(seconds: float) -> None:
    """Take no new runs, let those in flight finish for ``seconds``, hand the others over, and let go of the rest."""
    await watch.drain(seconds)
    await cool_down()


__all__ = ["Pool", "drain", "pool", "process_id", "start", "stop"]
