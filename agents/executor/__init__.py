"""Who runs the runs: detached tasks on the event loop of this process, each under a lease.

A run's lease is its process's beat. Whatever this process does for a run carries the epoch at which it
took the run; when the epoch has moved on, the work stops by itself.
"""

from agents.executor.pool import Pool, pool
from agents.executor.process import process_id
from agents.executor.watch import watch

start = watch.start
drain = watch.drain
stop = watch.stop

__all__ = ["Pool", "drain", "pool", "process_id", "start", "stop"]
