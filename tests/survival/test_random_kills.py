"""Kills at random moments, with a seed; ``python -m tests.survival.killer`` does more of them."""

from __future__ import annotations

import os

import pytest

from tests.survival import killer

KILLS = int(os.environ.get("SURVIVAL_KILLS", "20"))


@pytest.mark.server
@pytest.mark.slow
def test_it_survives_random_kills() -> None:
    found = killer.run(KILLS, seed=7, clients=5)
    assert found["runs"] >= KILLS // 2
    assert found["broken"] >= KILLS // 4
