"""What model calls cost: by the settings' prices alone, never by a guess.

LETTAWEB_PRICES: {"provider/model": {"input": 3.0, "output": 15.0, "cached": 0.3, "cache_write": 3.75}} in money per
million tokens of a live call; "batch" (default 0.5) is what a batch call costs of that. A key may end in "*".
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from django.conf import settings

from agents.providers.base import Usage

MILLION = Decimal(1_000_000)
EXACT = Decimal("0.000000001")


def cost_of(provider: str, model: str, usage: Usage, *, batch: bool = True) -> Decimal | None:
    """The cost of a call, None when the settings do not price it or the provider did not say what it used."""
    prices = _prices(f"{provider}/{model}")
    if prices is None or not usage.known or not {"input", "output"} <= prices.keys():
        return None
    plain = usage.input - usage.cached - usage.cache_write
    each = _price(prices, "input")
    total = plain * each + usage.output * _price(prices, "output")
    total += usage.cached * _price(prices, "cached", each) + usage.cache_write * _price(prices, "cache_write", each)
    part = _price(prices, "batch", Decimal("0.5")) if batch else Decimal(1)
    return (total * part / MILLION).quantize(EXACT)


def _price(prices: Mapping[str, Any], name: str, otherwise: Decimal = Decimal(0)) -> Decimal:
    value = prices.get(name)
    return otherwise if value is None else Decimal(str(value))


def _prices(handle: str) -> Mapping[str, Any] | None:
    table: Mapping[str, Mapping[str, Any]] = settings.LETTAWEB_PRICES
    if handle in table:
        return table[handle]
    return next((table[key] for key in table if key.endswith("*") and fnmatchcase(handle, key)), None)
