"""Python's garbage collector in processes that live long."""

from __future__ import annotations

import functools
import gc

YOUNG = 10_000  # new objects between two looks


@functools.cache
def spare() -> None:
    """Once everything is loaded: what is there now stays for good, it need not be looked at again, nor as often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
