"""Places where a test lets this process die as if by kill -9. Without its variable nothing here does anything."""

from __future__ import annotations

import os
import signal

WANTED = os.environ.get("LETTAWEB_TEST_FAULT", "")
"""The name of a place, or "name:3" for the third time that it is reached."""

_reached: dict[str, int] = {}


def reach(place: str) -> None:
    """Die here if a test says so."""
    if not WANTED:
        return
    name, _, count = WANTED.partition(":")
    if name != place:
        return
    _reached[place] = _reached.get(place, 0) + 1
    if _reached[place] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
