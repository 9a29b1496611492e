"""Many mixed calls at once leave nothing behind and are never mixed up."""

from __future__ import annotations

from tests.bench.sandbox_soak import soak
from tools.sandbox.runners import ZygoteRunner


def test_it_survives_many_mixed_calls(own: ZygoteRunner) -> None:
    report = soak(own, 200)
    assert report.wrong == []
    assert report.left == []
    assert report.restarts == 0
    assert report.descriptors <= 0
