"""What the sandbox is told by the settings, and which files of this machine its calls can see."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

PipPolicy = Literal["deny", "allowlist", "any"]
MIB = 1 << 20
DISTRIBUTION = re.compile(r"[ ;<>=!~\[(]")  # what follows the name in a requirement
FULL, LANDLOCK, NONE = 3, 2, 0
# Part of the contract with tools: arguments and results may be pydantic models wherever the server has pydantic.
ALWAYS_PRELOADED = ("pydantic",)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one call, in bytes, pieces and (timeout) seconds; memory counts beyond what Python itself takes."""

    timeout: float = 30.0
    memory: int = 512 * MIB
    reserve: int = 256 * MIB
    tmp: int = 16 * MIB
    inodes: int = 4096
    file: int = 10 * MIB
    descriptors: int = 64
    threads: int = 64
    result: int = MIB
    output: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """How the sandbox runs.

    ``data_dir`` holds the pip environments. ``hidden_paths`` (database, settings, media, …) must be invisible to calls:
    the probe checks it. ``pip_policy`` says whose requirements are installed, ``pip_allowed`` names them for
    ``allowlist``. ``preload`` are modules imported once for all calls. ``concurrency`` 0 means: from cores and memory.
    ``allow_subprocess`` lets tools of tier 3 start programs. ``force_tier``, ``allow_private_network`` and ``without``
    ("seccomp", "landlock") exist for tests only.
    """

    data_dir: Path
    min_tier: int = LANDLOCK
    force_tier: int | None = None
    unsafe: bool = False
    hidden_paths: tuple[str, ...] = ()
    pip_policy: PipPolicy = "deny"
    pip_allowed: tuple[str, ...] = ()
    pip_environments: int = 20
    preload: tuple[str, ...] = ALWAYS_PRELOADED
    allow_subprocess: bool = False
    allow_private_network: bool = False
    without: frozenset[str] = frozenset()
    concurrency: int = 0
    limits: Limits = field(default_factory=Limits)

    @property
    def environments(self) -> Path:
        """The folder of the pip environments."""
        return self.data_dir / "envs"


def from_settings() -> SandboxConfig:
    """Read Django's settings."""
    from django.conf import settings

    def setting(name: str, default: Any) -> Any:
        return getattr(settings, f"LETTAWEB_{name}", default)

    forced = str(setting("SANDBOX_FORCE_TIER", None) or "").strip()
    wanted = tuple(setting("SANDBOX_PRELOAD", ()))
    return SandboxConfig(
        data_dir=Path(setting("DATA_DIR", Path("var"))).resolve(),
        min_tier=int(setting("SANDBOX_MIN_TIER", LANDLOCK)),
        force_tier=int(forced) if forced else None,
        unsafe=bool(setting("SANDBOX_UNSAFE", False)),
        hidden_paths=private_paths(),
        pip_policy=setting("SANDBOX_PIP", "deny"),
        pip_allowed=tuple(setting("SANDBOX_PIP_ALLOW", ())),
        preload=tuple(dict.fromkeys([*ALWAYS_PRELOADED, *wanted])),
        allow_subprocess=bool(setting("SANDBOX_SUBPROCESS", False)),
    )


def private_paths() -> tuple[str, ...]:
    """Return the paths of the running Django project that no tool may see."""
    from django.conf import settings

    found = [str(getattr(settings, name, "") or "") for name in ("BASE_DIR", "MEDIA_ROOT", "LETTAWEB_DATA_DIR")]
    for database in settings.DATABASES.values():
        if "sqlite" in database.get("ENGINE", ""):
            found.append(str(database.get("NAME", "")))
    module = sys.modules.get(os.environ.get("DJANGO_SETTINGS_MODULE", ""))
    found.append(getattr(module, "__file__", None) or "")
    return tuple(dict.fromkeys(os.path.abspath(path) for path in found if path.strip() and ":memory:" not in path))


def libraries() -> list[str]:
    """Return the folders that a bare Python of this machine needs, Python's own first."""
    own = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    own = [path.replace(sys.prefix, sys.base_prefix, 1) for path in own]
    system = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo"]
    system += ["/usr/share/ca-certificates"]
    real = [path for path in system if os.path.isdir(path) and not os.path.islink(path)]
    return list(dict.fromkeys([*own, *real]))


@functools.cache
def packages(preload: tuple[str, ...]) -> tuple[str, ...]:
    """Return the site-packages folder and, in it, everything that the preloaded modules and their requirements own."""
    site = sysconfig.get_path("purelib")
    wanted = [owner for name in preload for owner in _owners(name.partition(".")[0])]
    seen: set[str] = set()
    entries: set[str] = set()
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        entries.update(file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "/"))
        wanted += [DISTRIBUTION.split(text, 1)[0] for text in distribution.requires or [] if "extra ==" not in text]
    return (site, *(os.path.join(site, entry) for entry in sorted(entries))) if entries else ()


def _owners(module: str) -> list[str]:
    """The distributions of a module: mostly the one of the same name; asking all of them takes a second."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        importlib.metadata.distribution(module)
        return [module]
    return list(importlib.metadata.packages_distributions().get(module, []))


def plan(config: SandboxConfig, tier: int) -> dict[str, Any]:
    """Return what the zygote is told at its start."""
    preload = tuple(name for name in config.preload if name not in ALWAYS_PRELOADED or importlib.util.find_spec(name))
    return {
        "tier": tier,
        "libraries": libraries(),
        "packages": packages(preload),
        "preload": list(preload),
        "environments": str(config.environments) if config.pip_policy != "deny" else "",
        "hidden": list(config.hidden_paths),
        "without": sorted(config.without),
        "subprocesses": config.allow_subprocess and tier >= FULL,
        "limits": limits(config),
    }


def limits(config: SandboxConfig) -> dict[str, int]:
    """Return the limits of a call as the child reads them."""
    names = ("memory", "reserve", "tmp", "inodes", "file", "descriptors", "threads", "result", "output")
    return {name: int(getattr(config.limits, name)) for name in names}


def concurrency(config: SandboxConfig) -> int:
    """Return how many calls may run at once: four per core (tools wait a lot), if their memory fits in what is free."""
    if config.concurrency > 0:
        return config.concurrency
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(4 * cores, _free_memory() // config.limits.memory, 64))


def _free_memory() -> int:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 4 * 1024 * MIB
    found = re.search(r"MemAvailable:\s+(\d+)", text)
    return int(found[1]) * 1024 if found else 4 * 1024 * MIB


def visible(config: SandboxConfig) -> list[str]:
    """Return the hidden paths that lie inside a folder which calls can see."""
    folders = [*libraries(), *packages(config.preload)[1:]]
    return [path for path in config.hidden_paths if any(_inside(path, folder) for folder in folders)]


def _inside(path: str, folder: str) -> bool:
    real, base = os.path.realpath(path), os.path.realpath(folder)
    return real == base or real.startswith(base + os.sep)
