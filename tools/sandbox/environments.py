"""Folders of installed pip requirements, one per set of requirements; a call sees its own only.

Only wheels are installed, so nothing of a package runs outside the sandbox.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .config import SandboxConfig
from .link import executable

BUILD_TIMEOUT = 300
KEEP_AT_LEAST = 900.0  # seconds since its last use in which a folder is not removed: calls may still use it
MARK = ".ready"
REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*"
    r"(?P<versions>(?:(?:===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*,?\s*)*)"
)
PASSWORD = re.compile(r"://[^@/\s]+@")  # of an index: the text reaches the model
INHERITED = re.compile(r"(?i)PATH|HOME|TMPDIR|LANG|LC_ALL|PIP_.*|https?_proxy|no_proxy|all_proxy|SSL_CERT_(FILE|DIR)")


class RequirementsRefused(Exception):
    """Requirements that may not or cannot be installed; the text names the setting, or what pip said."""


def ensure(requirements: tuple[str, ...], config: SandboxConfig) -> str:
    """Return the folder of ``requirements``, installed now if need be; empty for none. Raises RequirementsRefused."""
    wanted = sorted({item.strip() for item in requirements if item.strip()})
    if not wanted:
        return ""
    for requirement in wanted:
        _check(requirement, config)
    folder = config.environments / _key(wanted)
    if not (folder / MARK).exists():
        config.environments.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if not (folder / MARK).exists():
                _build(wanted, folder)
                _remove_oldest(config, folder)
    os.utime(folder / MARK)
    return str(folder)


def _check(requirement: str, config: SandboxConfig) -> None:
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise RequirementsRefused(f"{requirement!r} is no name with versions; URLs and paths are not installed")
    if config.pip_policy == "any":
        return
    if config.pip_policy != "allowlist":
        raise RequirementsRefused(
            f"the tool asks for {requirement}, but LETTAWEB_SANDBOX_PIP is 'deny'; "
            "the administrator can set it to 'allowlist' or 'any'"
        )
    if _name(found["name"]) not in {_name(item) for item in config.pip_allowed}:
        raise RequirementsRefused(f"{requirement} is not in LETTAWEB_SANDBOX_PIP_ALLOW")


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text.strip()).lower()


def _key(requirements: list[str]) -> str:
    tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return hashlib.sha256("\n".join([*requirements, tag]).encode()).hexdigest()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One builder of a folder at a time, over all processes."""
    import fcntl  # Windows, where no tool runs, has none

    with open(folder.with_name(f".{folder.name}.lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(requirements: list[str], folder: Path) -> None:
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        _install(requirements, building)
        (building / MARK).touch()
        _make_readable(building)
        os.rename(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _install(requirements: list[str], target: Path) -> None:
    python = sys.executable if importlib.util.find_spec("pip") else executable()
    options = ["--only-binary", ":all:", "--target", str(target), "--no-input", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if INHERITED.fullmatch(name)}
    command = [python, "-m", "pip", "install", *options, *requirements]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=BUILD_TIMEOUT, cwd="/")
    except subprocess.TimeoutExpired:
        raise RequirementsRefused(f"pip did not finish within {BUILD_TIMEOUT} seconds") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        text = PASSWORD.sub("://", " ".join(said))
        raise RequirementsRefused(f"pip could not install {', '.join(requirements)}: {text}")


def _make_readable(folder: Path) -> None:
    """Calls run as another user."""
    for place, _, names in os.walk(folder):
        os.chmod(place, 0o755)
        for name in names:
            os.chmod(os.path.join(place, name), 0o644)


def _remove_oldest(config: SandboxConfig, kept: Path) -> None:
    """Keep the most recently used folders."""
    marks = [item for item in config.environments.glob(f"*/{MARK}") if item.parent != kept]
    marks.sort(key=lambda item: item.stat().st_mtime, reverse=True)
    for mark in marks[max(0, config.pip_environments - 1) :]:
        if time.time() - mark.stat().st_mtime > KEEP_AT_LEAST:
            trash = mark.parent.with_name(f".trash-{mark.parent.name}")
            with contextlib.suppress(OSError):
                os.rename(mark.parent, trash)
            shutil.rmtree(trash, ignore_errors=True)
