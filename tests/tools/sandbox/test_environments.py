"""Requirements of tools: who may have them, how they are installed, who sees them."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.sandbox.calls import make_call, run
from tests.tools.sandbox.conftest import started
from tools import sandbox
from tools.sandbox import SandboxConfig, environments
from tools.sandbox.environments import RequirementsRefused, ensure
from tools.sandbox.flight import Flight
from tools.sandbox.runners import ZygoteRunner

SHELF = {"shelfone": "VALUE = 'one'\n", "shelftwo": "VALUE = 'two'\n"}


def _wheel(folder: Path, name: str, text: str) -> None:
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_hash(content)},{len(content)}\n" for path, content in files.items())
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, content in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            wheel.writestr(path, content)


def _hash(content: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Wheels on disk; pip asks no index."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, text in SHELF.items():
        _wheel(folder, name, text)
    before = dict(os.environ)
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))
    yield folder
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Installs without pip, which takes seconds; gives what was built."""
    names: list[str] = []

    def install(wanted: list[str], target: Path) -> None:
        names.append(" ".join(wanted))
        (target / "module.py").touch()

    monkeypatch.setattr(environments, "_install", install)
    return names


@pytest.fixture(scope="module")
def anything(config: SandboxConfig, shelf: Path) -> Iterator[ZygoteRunner]:
    runner = started(dataclasses.replace(config, pip_policy="any"))
    yield runner
    runner.stop()


def _run(runner: ZygoteRunner, source: str, *requirements: str) -> str:
    call = make_call(source, pip_requirements=requirements)
    flight = Flight(call, runner.config, ensure(requirements, runner.config))
    runner.submit(flight)
    outcome = flight.future.result(30)
    return str(outcome.value if outcome.status == "success" else outcome.error)


def test_it_installs_once_and_shows_each_call_its_own(anything: ZygoteRunner) -> None:
    one = "import shelfone\ndef tool():\n    return shelfone.VALUE"
    both = "import shelfone, shelftwo\ndef tool():\n    return shelfone.VALUE + shelftwo.VALUE"
    assert _run(anything, both, "shelftwo==1.0", "shelfone") == "onetwo"
    assert _run(anything, one, "shelfone") == "one"
    assert "ModuleNotFoundError" in run(anything, one).error
    assert "ModuleNotFoundError" in _run(anything, both, "shelfone")
    look = "import os\ndef tool():\n    return os.listdir('/envs')"
    assert "PermissionError" in _run(anything, look, "shelfone")


def test_it_takes_the_order_as_the_same_set(config: SandboxConfig, built: list[str], tmp_path: Path) -> None:
    own = dataclasses.replace(config, pip_policy="any", data_dir=tmp_path)
    assert ensure(("shelfone", "shelftwo "), own) == ensure(("shelftwo", "shelfone", "shelfone"), own)
    assert ensure(("shelfone",), own) != ensure(("shelftwo",), own)
    assert ensure((), own) == ""


def test_it_builds_once_for_callers_at_the_same_time(config: SandboxConfig, built: list[str], tmp_path: Path) -> None:
    own = dataclasses.replace(config, pip_policy="any", data_dir=tmp_path)
    threads = [threading.Thread(target=ensure, args=(("shelfone",), own)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == ["shelfone"]


def test_it_leaves_nothing_of_a_failed_build(config: SandboxConfig, shelf: Path, tmp_path: Path) -> None:
    own = dataclasses.replace(config, pip_policy="any", data_dir=tmp_path)
    with pytest.raises(RequirementsRefused, match="pip could not install no-such-shelf"):
        ensure(("no-such-shelf",), own)
    assert [item.name for item in own.environments.iterdir() if not item.name.endswith(".lock")] == []


def test_it_removes_those_not_used_for_long(config: SandboxConfig, built: list[str], tmp_path: Path) -> None:
    own = dataclasses.replace(config, pip_policy="any", data_dir=tmp_path, pip_environments=2)
    names = [("shelfone",), ("shelftwo",), ("shelfone", "shelftwo"), ("shelfone==1.0",)]
    folders = []
    for age, requirements in zip((5000, 9000, 10, 0), names, strict=True):
        folder = ensure(requirements, own)
        os.utime(f"{folder}/{environments.MARK}", (time.time() - age,) * 2)
        folders.append(folder)
    assert [os.path.isdir(folder) for folder in folders] == [False, False, True, True]


@pytest.mark.parametrize(
    "requirement",
    [
        "-r file",
        "--index-url=http://x",
        "git+https://x/y",
        "./local",
        "x @ https://x",
        "x; python_version>'3'",
        "x\ny",
        "/x",
    ],
)
def test_it_refuses_what_is_no_name(requirement: str, config: SandboxConfig) -> None:
    with pytest.raises(RequirementsRefused, match="is no name with versions"):
        ensure((requirement,), dataclasses.replace(config, pip_policy="any"))


def test_it_denies_by_default_and_names_the_setting(running: None) -> None:
    outcome = sandbox.run_blocking(make_call("def tool():\n    pass", pip_requirements=("shelfone",)))
    assert outcome.status == "error"
    assert outcome.error.startswith("Error executing function tool: RequirementsRefused: the tool asks for shelfone")
    assert "LETTAWEB_SANDBOX_PIP is 'deny'" in outcome.error


def test_it_installs_what_the_list_allows(config: SandboxConfig, built: list[str], tmp_path: Path) -> None:
    listed = dataclasses.replace(
        config, pip_policy="allowlist", pip_allowed=("Shelf.One", "shelfone"), data_dir=tmp_path
    )
    assert ensure(("shelfone >= 1.0, <2",), listed)
    with pytest.raises(RequirementsRefused, match="shelftwo is not in LETTAWEB_SANDBOX_PIP_ALLOW"):
        ensure(("shelftwo",), listed)
