"""Who runs the runs: detached tasks on the event loop of this process, each under a lease.

A run's lease is its process's beat. Whatever this process does for a run carries the epoch at which it
took the run; when the epoch has moved on, the work stops by itself.
"""

from agents.executor.lease import process_id
from agents.executor.pool import Pool, pool

start = pool.start
drain = pool.drain
stop = pool.stop

__all__ = ["Pool", "drain", "pool", "process_id", "start", "stop"]
