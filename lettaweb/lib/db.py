"""Threads for database work that comes from the event loop, with connections that stay open.

Django's own way gives every request a thread and every thread a connection; work that never ends (runs,
streams) goes through the few threads here instead. SQLite: one writer and a few readers; PostgreSQL: one
pool for both.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import connection, connections

from lettaweb.lib.transient import ERRORS

P = ParamSpec("P")
T = TypeVar("T")

TRUSTED_SECONDS = 2.0  # a connection used so lately is not asked whether it still lives
SQLITE_READERS = 2

_lock = threading.Lock()
_pools: dict[str, ThreadPoolExecutor] = {}
_seen = threading.local()
_inline = False
_doubted = float("-inf")  # when a connection of any thread failed last: others may have died with it


async def in_db(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``work(*args, **kwargs)`` in a writing thread; its result or its exception.

    ``work`` is short and synchronous. It sees the caller's context variables; what it sets stays its own.
    A cancelled caller does not stop work that has begun.
    """
    return await _run("write", partial(work, *args, **kwargs))


async def in_db_read(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As :func:`in_db`, for work that only reads: it never waits behind a writer."""
    return await _run("read", partial(work, *args, **kwargs))


def submit(work: Callable[[], T]) -> Any:
    """Queue ``work`` on a writing thread from any thread; a ``concurrent.futures.Future``."""
    return _pool("write").submit(contextvars.copy_context().run, _cared_for, work)


@contextmanager
def inline() -> Iterator[None]:
    """Unit tests: do the work at once in the calling thread, on its connection and in its transaction."""
    global _inline
    before, flag = _inline, os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    _inline = True
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        yield
    finally:
        _inline = before
        if flag is None:
            os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)


def close_pools() -> None:
    """End the threads and close their connections; the next call starts new ones."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        _close_threads(pool)


async def _run(kind: str, work: Callable[[], T]) -> T:
    if _inline:
        return work()
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool(kind), context.run, _cared_for, work)


def _pool(kind: str) -> ThreadPoolExecutor:
    postgresql = connection.vendor == "postgresql"
    name = "both" if postgresql else kind
    with _lock:
        if name not in _pools:
            size = settings.LETTAWEB_DB_THREADS if postgresql else 1 if kind == "write" else SQLITE_READERS
            _pools[name] = ThreadPoolExecutor(size, thread_name_prefix=f"db-{name}")
        return _pools[name]


def _cared_for(work: Callable[[], T]) -> T:
    global _doubted
    _check_connections()
    try:
        return work()
    except ERRORS:
        _doubted = time.monotonic()
        raise
    finally:
        _seen.at = time.monotonic()
        _check_connections()


def _check_connections() -> None:
    """Drop connections that failed or were left in a transaction; ask one that was idle whether it lives."""
    fresh = getattr(_seen, "at", float("-inf")) > max(_doubted, time.monotonic() - TRUSTED_SECONDS)
    for wrapper in connections.all(initialized_only=True):
        wrapper.close_at = None  # the age limit is for the threads of requests
        wrapper.close_if_unusable_or_obsolete()
        if fresh:
            wrapper.health_check_done = True  # type: ignore[attr-defined]
        elif getattr(wrapper, "pool", None) and not wrapper.in_atomic_block:
            wrapper.close()  # back to its pool, which asks a connection whether it lives before it lends it


def _close_threads(pool: ThreadPoolExecutor) -> None:
    # A barrier makes every thread take exactly one of the closing jobs.
    threads = len(pool._threads)
    barrier = threading.Barrier(threads) if threads else None
    for _ in range(threads):
        pool.submit(_close_here, barrier)
    pool.shutdown(wait=True)


def _close_here(barrier: threading.Barrier | None) -> None:
    try:
        if barrier is not None:
            barrier.wait(timeout=10)
    finally:
        connections.close_all()
