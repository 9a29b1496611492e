"""Names for agents that come without one."""

from __future__ import annotations

import secrets

ADJECTIVES = (
    "Amber Brisk Calm Clever Copper Daring Eager Early Gentle Golden Humble Jolly Keen Kind Lively Lucky Mellow "
    "Nimble Patient Quick Quiet Silver Steady Sunny Swift Tidy Upbeat Warm Wise Witty"
).split()
NOUNS = (
    "Acorn Badger Beacon Birch Brook Comet Falcon Fern Finch Harbor Heron Lantern Maple Meadow Otter Pebble Pine "
    "Puffin Quartz Raven Reed River Robin Sparrow Spruce Thistle Tulip Walnut Willow Wren"
).split()


def random_name() -> str:
    """Two words, like ``QuietHeron``; not unique, and need not be."""
    return secrets.choice(ADJECTIVES) + secrets.choice(NOUNS)
