"""Moments in an agent's own time zone, in words and back. Takes the time, never asks for it."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo


def zone(name: str | None) -> tzinfo:
    """The time zone of this name; UTC when there is none of it."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):  # unknown, malformed, a directory of the database
        return UTC


def local_time(now: datetime, timezone: str | None) -> str:
    """``2026-11-30 02:32:48 PM UTC+0000``: how messages from the system tell the time."""
    return now.astimezone(zone(timezone)).strftime("%Y-%m-%d %I:%M:%S %p %Z%z")
