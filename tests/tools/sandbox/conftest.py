"""Running sandboxes of each kind; a tier that this machine cannot give skips its tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tools.sandbox.calls import MARKS, unavailable
from tools import sandbox
from tools.sandbox import SandboxConfig, SandboxUnavailable, probe
from tools.sandbox.runners import Runner, ZygoteRunner

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZygoteRunner]:
    """Tier 3, started with the marks that no tool may find in the server's environment."""
    hidden = (str(ROOT), str(ROOT / "manage.py"), str(ROOT / "pyproject.toml"))
    config = SandboxConfig(data_dir=tmp_path_factory.mktemp("sandbox"), force_tier=3, hidden_paths=hidden)
    try:
        with marked():
            runner = started(config)
    except SandboxUnavailable as error:
        unavailable(str(error))
    yield runner
    runner.stop()


@contextmanager
def marked() -> Iterator[None]:
    """With the marks among the server's variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MARKS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def config(full: ZygoteRunner) -> SandboxConfig:
    """Works on this machine: a sandbox that does not start with it is a failure, no reason to skip."""
    return full.config


@pytest.fixture
def own(config: SandboxConfig) -> Iterator[ZygoteRunner]:
    """A sandbox that a test may break."""
    runner = started(config)
    yield runner
    runner.stop()


@pytest.fixture
def running(config: SandboxConfig) -> Iterator[None]:
    """The sandbox as the rest of the server uses it."""
    sandbox.start(config)
    yield
    sandbox.stop()


def started(config: SandboxConfig) -> ZygoteRunner:
    runner: Runner = probe.start(config)
    assert isinstance(runner, ZygoteRunner)
    return runner
