"""Which tier runs, why it is not a better one, and what is said when none does; never a silent fallback."""

from __future__ import annotations

import dataclasses
import os
import sysconfig
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tools.sandbox.calls import fly, make_call, run, value_of
from tests.tools.sandbox.conftest import started
from tools import checks, sandbox
from tools.management.commands import sandbox_doctor
from tools.sandbox import SandboxConfig, SandboxUnavailable, Tier, config, escapes, link, probe
from tools.sandbox.runners import Runner, ZygoteRunner
from tools.sandbox.unsafe import UnsafeRunner

STDLIB = sysconfig.get_path("stdlib").replace(os.sys.prefix, os.sys.base_prefix)  # type: ignore[attr-defined]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The tiers that cannot start."""
    tiers: set[int] = set()
    spawn = link.Link._spawn

    def refuse(self: link.Link) -> Any:
        if self.tier in tiers:
            raise link.StartFailed(f"no luck with {self.tier}")
        return spawn(self)

    monkeypatch.setattr(link.Link, "_spawn", refuse)
    return tiers


@pytest.fixture
def unsafe(config: SandboxConfig) -> Iterator[Runner]:
    runner = probe.start(dataclasses.replace(config, unsafe=True))
    assert isinstance(runner, UnsafeRunner)
    yield runner
    runner.stop()


def test_it_reports_the_full_tier(full: ZygoteRunner) -> None:
    assert (full.tier.number, full.tier.name, full.tier.why) == (3, "full", "")
    assert set(full.tier.missing) <= {"Landlock"}


def test_it_refuses_when_nothing_works_and_names_the_fix(config: SandboxConfig, broken: set[int]) -> None:
    broken |= {3, 2}
    with pytest.raises(SandboxUnavailable) as raised:
        probe.start(dataclasses.replace(config, force_tier=None))
    for text in ("tier 3: no luck with 3", "tier 2: no luck with 2", "user namespaces", "LETTAWEB_SANDBOX_UNSAFE=1"):
        assert text in str(raised.value)


def test_it_does_not_go_below_the_tier_that_the_settings_ask_for(config: SandboxConfig, broken: set[int]) -> None:
    broken.add(3)
    with pytest.raises(SandboxUnavailable, match="LETTAWEB_SANDBOX_MIN_TIER is 3"):
        probe.start(dataclasses.replace(config, force_tier=None, min_tier=3))


def test_it_refuses_other_systems(config: SandboxConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "sys", SimpleNamespace(platform="darwin"))
    with pytest.raises(SandboxUnavailable, match="darwin has neither namespaces nor Landlock"):
        probe.start(config)


def test_it_answers_with_tier_none(config: SandboxConfig, broken: set[int]) -> None:
    broken.add(3)
    with pytest.raises(SandboxUnavailable):
        sandbox.start(config)
    assert (sandbox.tier().number, sandbox.tier().name) == (0, "none")
    with pytest.raises(SandboxUnavailable):
        sandbox.run_blocking(make_call("def tool():\n    pass"))
    sandbox.stop()
    assert sandbox.known_tier() is None


def test_it_shows_health_what_runs(running: None) -> None:
    assert sandbox.known_tier() == {"tier": 3, "name": "full"}


def test_it_covers_private_paths_among_the_visible_ones(config: SandboxConfig) -> None:
    hidden = (f"{STDLIB}/this.py", f"{STDLIB}/email")
    runner = started(dataclasses.replace(config, hidden_paths=hidden))
    try:
        source = f"import os\ndef tool():\n    return open('{hidden[0]}').read(), os.listdir('{hidden[1]}')"
        assert "PermissionError" in run(runner, source).error or value_of(runner, source) == ["", []]
    finally:
        runner.stop()


def test_it_does_not_start_when_a_private_path_is_visible(full: ZygoteRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks for itself: here the sandbox is not told what to hide."""
    plan = config.plan
    monkeypatch.setattr(config, "plan", lambda *given: plan(*given) | {"hidden": []})
    seen = dataclasses.replace(full.config, hidden_paths=(f"{STDLIB}/this.py",))
    with pytest.raises(SandboxUnavailable, match=r"this\.py is visible"):
        probe.start(seen)


def test_it_says_which_module_could_not_be_preloaded(config: SandboxConfig) -> None:
    runner = started(dataclasses.replace(config, preload=("no_such_module", "json")))
    try:
        assert "no_such_module was not preloaded: ModuleNotFoundError" in runner.tier.why
    finally:
        runner.stop()


def test_it_keeps_the_contract_without_protection(unsafe: Runner) -> None:
    assert (unsafe.tier.number, unsafe.tier.name) == (0, "unsafe")
    outcome = run(unsafe, "import os\ndef tool(a: int):\n    print(os.environ['T'])\n    return a", {"a": "5"},
                  env={"T": "s3cret"}, secrets=("s3cret",))  # fmt: skip
    assert (outcome.value, outcome.stdout) == (5, "[redacted]\n")
    assert "DATABASE_URL" not in value_of(unsafe, "import os\ndef tool():\n    return list(os.environ)")
    assert "ValueError: x" in run(unsafe, "def tool():\n    raise ValueError('x')").error
    assert "exited without a result" in run(unsafe, "import os\ndef tool():\n    os._exit(0)").error


def test_it_ends_calls_without_protection(unsafe: Runner) -> None:
    sleep = "import time\ndef tool():\n    time.sleep(60)"
    begun = time.monotonic()
    assert "TimeoutError: the tool did not finish within 0.5 seconds" in run(unsafe, sleep, timeout=0.5).error
    flight = fly(unsafe, make_call(sleep))
    unsafe.end(flight)
    assert "cancelled" in flight.future.result(10).error
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("tier", "ids"),
    [
        (Tier(3, "full"), []),
        (Tier(2, "landlock", "why", ("x",)), ["tools.W001"]),
        (Tier(0, "none", "why"), ["tools.E001"]),
        (Tier(0, "unsafe"), ["tools.E001"]),
    ],
)
def test_it_checks_the_tier(tier: Tier, ids: list[str]) -> None:
    assert [message.id for message in checks.tier_messages(tier)] == ids


def test_it_checks_what_is_visible(config: SandboxConfig) -> None:
    seen = dataclasses.replace(config, hidden_paths=(f"{STDLIB}/this.py", "/somewhere/else"))
    assert [message.id for message in checks.visible_messages(seen)] == ["tools.E002"]
    assert checks.visible_messages(config) == []


def test_it_checks_the_unsafe_mode_and_the_user(config: SandboxConfig) -> None:
    unsafe = dataclasses.replace(config, unsafe=True)
    assert [message.id for message in checks.unsafe_messages(unsafe, debug=False)] == ["tools.E003"]
    assert checks.unsafe_messages(unsafe, debug=True) == checks.unsafe_messages(config, debug=False) == []
    assert [message.id for message in checks.root_messages(0)] == ["tools.W002"]
    assert checks.root_messages(1000) == []


def test_it_reads_the_settings(settings: Any) -> None:
    settings.LETTAWEB_SANDBOX_MIN_TIER, settings.LETTAWEB_SANDBOX_FORCE_TIER = 3, ""
    settings.LETTAWEB_SANDBOX_PRELOAD = ["yaml"]
    found = config.from_settings()
    assert (found.min_tier, found.force_tier, found.unsafe, found.pip_policy) == (3, None, False, "deny")
    assert found.preload == ("pydantic", "yaml")
    assert str(settings.BASE_DIR) in found.hidden_paths
    assert not found.allow_subprocess
    settings.LETTAWEB_SANDBOX_FORCE_TIER, settings.LETTAWEB_SANDBOX_SUBPROCESS = "2", True
    found = config.from_settings()
    assert found.force_tier == 2
    assert found.allow_subprocess


def test_it_prints_the_doctors_table(config: SandboxConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = dataclasses.replace(escapes.ESCAPES[0], name="made up", check=lambda outcome: "got out")
    monkeypatch.setattr(escapes, "ESCAPES", [escapes.ESCAPES[0], wrong])
    lines: list[str] = []
    assert sandbox_doctor.examine(config, 3, lines.append) == 1
    assert lines[0] == "tier 3 (full)"
    assert lines[-2].endswith("contained")
    assert lines[-1].endswith("got out")
