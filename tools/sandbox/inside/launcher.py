"""Starts the zygote in its namespaces and waits for it; what cannot be set up is told to the server, never skipped."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import sys
import threading
from typing import Any

from . import child, landlock, linux, message, rootfs, seccomp
from .zygote import Zygote

NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
    | linux.CLONE_NEWCGROUP
)
NOBODY = 65534
ARENAS = 2
STANDARD = (
    "array", "asyncio", "base64", "bisect", "calendar", "collections.abc", "copy", "csv", "dataclasses", "datetime",
    "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "http.client", "inspect", "io",
    "itertools", "json", "logging", "math", "operator", "pathlib", "pprint", "random", "re", "secrets", "shutil",
    "socket", "ssl", "statistics", "string", "struct", "tempfile", "textwrap", "threading", "time", "traceback",
    "typing", "unicodedata", "urllib.parse", "urllib.request", "uuid", "zlib", "zoneinfo",
)  # fmt: skip
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    """Entry: ``argv`` is the control descriptor and the server's pid (or ``unsafe``, request and result)."""
    if sys.argv[1] == "unsafe":
        importlib.import_module(f"{__package__}.unprotected").main(int(sys.argv[2]), int(sys.argv[3]))
        return
    linux.die_with_parent(int(sys.argv[2]))
    control = socket.socket(fileno=int(sys.argv[1]))
    plan, _ = message.receive(control)
    if plan is None:
        return
    try:
        _start(control, plan)
    except Exception as error:
        message.send(control, {"failed": f"{type(error).__name__}: {error}"})


def _start(control: socket.socket, plan: dict[str, Any]) -> None:
    if not seccomp.supported():
        raise OSError(f"no table of system calls for {linux.MACHINE}")
    linux.limit_malloc_arenas(ARENAS)
    problems = preload(plan)
    plan["user"] = NOBODY if os.geteuid() == 0 else os.getuid()
    launcher = os.getpid()
    if plan["tier"] >= 3:
        _enter_namespaces(plan)
    elif landlock.version() < 1:
        raise OSError("the kernel has no Landlock")
    pid = os.fork()
    if pid:
        control.close()
        os.waitpid(pid, 0)
        os._exit(0)
    _become_zygote(control, plan, problems, launcher)


def preload(plan: dict[str, Any]) -> dict[str, str]:
    """Import what calls are likely to need; return the modules that could not be imported, and why."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    for name in STANDARD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    problems = {}
    sys.path.extend(plan["packages"][:1])
    for name in plan["preload"]:
        try:
            importlib.import_module(name)
        except Exception as error:
            problems[name] = f"{type(error).__name__}: {error}"
    if plan["packages"]:
        sys.path.remove(plan["packages"][0])
    return problems


def _enter_namespaces(plan: dict[str, Any]) -> None:
    """Unshare; the process stays in its pid namespace, its next child is pid 1 of the new one."""
    if threading.active_count() > 1:
        raise OSError("a preloaded module has started threads")
    user, group = os.getuid(), os.getgid()
    if os.geteuid() != 0:
        linux.unshare(NAMESPACES)
        child.map_self(user, group)
        return
    ready, tell = os.pipe()
    mapped, answer = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        _map_parent(ready, answer)
    linux.unshare(NAMESPACES)
    os.write(tell, b"1")
    os.close(answer)
    done = os.read(mapped, 1)
    os.waitpid(mapper, 0)
    for descriptor in (ready, tell, mapped):
        os.close(descriptor)
    if not done:
        raise OSError("the user namespace could not be mapped")


def _map_parent(ready: int, answer: int) -> None:
    """As root, from outside: map root (to mount) and nobody (to run as) into the parent's user namespace."""
    code = 1
    try:
        parent = os.getppid()
        os.read(ready, 1)
        for kind in ("uid_map", "gid_map"):
            child.write_proc(f"/proc/{parent}/{kind}", f"0 0 1\n{NOBODY} {NOBODY} 1\n")
        os.write(answer, b"1")
        code = 0
    finally:
        os._exit(code)


def _become_zygote(control: socket.socket, plan: dict[str, Any], problems: dict[str, str], launcher: int) -> None:
    try:
        missing = _settle(plan, launcher)
        facts = {"landlock": landlock.version(), "problems": problems, "missing": missing}
        message.send(control, {"ready": plan["tier"], **facts})
        Zygote(control, plan).serve()
    except Exception as error:
        with contextlib.suppress(OSError):
            message.send(control, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _settle(plan: dict[str, Any], launcher: int) -> list[str]:
    """Put the zygote where its children shall live; return what this machine cannot give."""
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    if plan["tier"] >= 3:
        rootfs.build(plan)
        if os.geteuid() == 0:
            linux.become(NOBODY)
    else:
        _drop_root(plan)
        if os.getppid() != launcher:
            os._exit(1)
        os.chdir("/")
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    importlib.invalidate_caches()
    return [] if landlock.version() else ["Landlock"]


def _drop_root(plan: dict[str, Any]) -> None:
    """Without namespaces, root runs its calls as nobody; raises OSError where nobody cannot read Python's own files."""
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    for path in plan["libraries"][:1]:
        if not os.access(path, os.R_OK | os.X_OK):
            raise OSError(f"as root, calls run as the user nobody, who cannot read Python's files in {path}")
