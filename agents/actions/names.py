"""Names for agents that come without one."""

from __future__ import annotations

import secrets

ADJECTIVES = (
    "Amber", "Brisk", "Calm", "Clever", "Copper", "Daring", "Eager", "Gentle", "Golden", "Humble", "Jolly", "Keen",
    "Kind", "Lively", "Lucky", "Mellow", "Nimble", "Patient", "Quick", "Quiet", "Silver", "Steady", "Sunny", "Witty",
)  # fmt: skip
NOUNS = (
    "Acorn", "Badger", "Beacon", "Birch", "Brook", "Comet", "Falcon", "Fern", "Finch", "Harbor", "Heron", "Lantern",
    "Maple", "Meadow", "Otter", "Pebble", "Pine", "Puffin", "Quartz", "Raven", "River", "Robin", "Sparrow", "Willow",
)  # fmt: skip


def random_name() -> str:
    """Two words, like ``QuietHeron``; not unique, and need not be."""
    return secrets.choice(ADJECTIVES) + secrets.choice(NOUNS)
