"""One call, in its own process: shuts itself in, step by step, and only then compiles and runs the tool's source.

A failure of any step ends the process before the source is looked at.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import socket
import struct
import sys
import types
from dataclasses import dataclass
from typing import Any

from . import invoke, landlock, linux, message, rootfs, seccomp

RULESET_FD, REQUEST_FD, RESULT_FD = 61, 62, 63  # out of the way of a tool that closes or writes to low numbers
PROXY_PORT = 3128
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
NICER = 5
SLACK = 256  # threads that the same user may start elsewhere meanwhile


@dataclass(frozen=True)
class Prepared:
    """What a spare has made ready: filter, Landlock rules (descriptor, -1 for none), and limits that depend on it."""

    filter: bytes
    ruleset: int
    modules: tuple[str, ...]
    processes: int
    address_space: int
    data: int


def prepare(plan: dict[str, Any], common: Common, ruleset: int) -> Prepared:
    """Do what does not depend on the call: namespaces, own /tmp and /proc, own user namespace (tier 3)."""
    linux.die_with_parent(0 if plan["tier"] >= 3 else plan["zygote"])
    processes = plan["limits"]["threads"]
    if plan["tier"] >= 3:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
        rootfs.mount_own(plan)
        _own_user_namespace()
    else:
        processes += SLACK + _threads_of_user()
    if ruleset >= 0 and plan["tier"] >= 3:
        landlock.allow(ruleset, rootfs.own_rules())
    rootfs.raise_oom_score()
    address_space, data = _memory()
    instructions = common.filter or _filter(plan, network=False)
    return Prepared(instructions, ruleset, common.modules, processes, address_space, data)


@dataclass(frozen=True)
class Common:
    """What the zygote has made ready for all: the filter (tier 3: every call has pid 1) and the rules of paths."""

    filter: bytes
    rules: tuple[bytes, ...]
    modules: tuple[str, ...]


def common(plan: dict[str, Any]) -> Common:
    """Make ready what all calls share; must run where the calls' files are visible."""
    usable = landlock.version() > 0 and "landlock" not in plan["without"]
    rules = tuple(rootfs.common_rules(plan)) if usable else ()
    package = (__package__ or "").partition(".")[0]
    own = tuple(name for name in sys.modules if name == package or name.startswith(f"{package}."))
    invoke.warm_up()
    return Common(_filter(plan, network=False) if plan["tier"] >= 3 else b"", rules, own)


def _filter(plan: dict[str, Any], *, network: bool) -> bytes:
    if "seccomp" in plan["without"]:
        return b""
    own_files = plan["tier"] >= 3
    own = 1 if own_files else os.getpid()
    return seccomp.program(network=network, subprocesses=plan["subprocesses"], private_files=own_files, own=own)


def _memory() -> tuple[int, int]:
    """Return the bytes of address space and of data that Python itself takes; zeros where there is no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = [int(word) for word in file.read().split()]
    except OSError:
        return 0, 0
    return pages[0] * resource.getpagesize(), pages[5] * resource.getpagesize()


def _threads_of_user() -> int:
    """Without a user namespace the kernel counts all threads of the user: start from those there are."""
    found, user = 0, os.getuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                found += len(os.listdir(f"/proc/{name}/task"))
    return found


def _own_user_namespace() -> None:
    """The same user in a namespace of its own, so that its processes are counted apart."""
    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER)
    map_self(user, group)


def map_self(user: int, group: int) -> None:
    """Map one user and one group of the parent namespace to themselves."""
    write_proc("/proc/self/setgroups", "deny")
    write_proc("/proc/self/uid_map", f"{user} {user} 1")
    write_proc("/proc/self/gid_map", f"{group} {group} 1")


def write_proc(path: str, text: str) -> None:
    """Write one value to the kernel."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def run(plan: dict[str, Any], prepared: Prepared, header: dict[str, Any], descriptors: list[int]) -> None:
    """Lock the process down and run the call of ``header``: its descriptors are request, results, outputs, channel."""
    network = bool(header["network"])
    if network:
        _open_network(descriptors.pop())
    _place(descriptors, prepared.ruleset)
    environment = rootfs.environment_inside(plan, header["environment"])
    request = _read_request()
    _replace_environment(request["environment"])
    _set_limits(header["limits"], prepared)
    if prepared.ruleset >= 0:
        _allow_call(environment, network=network)
    _lock(plan, _filter(plan, network=True) if network else prepared.filter)
    _forget_ourselves(plan, prepared.modules, environment)
    invoke.run(request, result=RESULT_FD, limits=header["limits"])


def _open_network(channel: int) -> None:
    """A network namespace of the call's own, where only the server listens: at the proxy's port."""
    linux.unshare(linux.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
    with socket.create_server(("127.0.0.1", PROXY_PORT)) as server, socket.socket(fileno=channel) as answer:
        message.send(answer, {"listening": PROXY_PORT}, [server.fileno()])


def _place(descriptors: list[int], ruleset: int) -> None:
    """Put the call's descriptors where they belong and close everything else."""
    request, result, stdout, stderr = (fcntl.fcntl(item, fcntl.F_DUPFD, RESULT_FD + 1) for item in descriptors)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for source, target in ((stdout, 1), (stderr, 2), (request, REQUEST_FD), (result, RESULT_FD)):
        os.dup2(source, target, inheritable=target < 3)
    if ruleset >= 0:
        os.dup2(ruleset, RULESET_FD)
    os.closerange(3, RULESET_FD)
    linux.close_from(RESULT_FD + 1)


def _read_request() -> dict[str, Any]:
    with open(REQUEST_FD, "rb") as file:
        request: dict[str, Any] = json.loads(file.read())
    return request


def _replace_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _set_limits(limits: dict[str, int], prepared: Prepared) -> None:
    """Soft and hard alike: nothing is left to raise. Memory counts from what Python itself needs."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_NOFILE: limits["descriptors"],
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: limits["descriptors"],
        resource.RLIMIT_DATA: prepared.data + limits["memory"],
        resource.RLIMIT_AS: prepared.address_space + limits["memory"] + limits["reserve"],
        resource.RLIMIT_NPROC: prepared.processes,
    }
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _allow_call(environment: str, *, network: bool) -> None:
    """Add what only this call may reach."""
    if environment:
        landlock.allow(RULESET_FD, [landlock.rule_of(environment, landlock.READ)])
    if network:
        landlock.allow_port(RULESET_FD, PROXY_PORT)


def _lock(plan: dict[str, Any], instructions: bytes) -> None:
    """The steps that cannot be taken back; the order matters: each needs what the next one takes away."""
    os.nice(NICER)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    if landlock.version() and "landlock" not in plan["without"]:
        landlock.enforce(RULESET_FD)
    if instructions:
        seccomp.apply(instructions)
    elif "seccomp" not in plan["without"]:
        raise OSError("there is no filter")


def tell_failure(error: BaseException) -> None:
    """Leave the reason of a failed step for the operator, if the call's files are in place; the tool has not run."""
    with contextlib.suppress(OSError):
        os.write(2, f"the sandbox could not be set up: {type(error).__name__}: {error}\n".encode())


def _forget_ourselves(plan: dict[str, Any], modules: tuple[str, ...], environment: str) -> None:
    """Leave the tool a Python that knows nothing of this package."""
    for name in modules:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = ["tool"]
    sys.path.extend(plan["packages"][:1])
    if environment:
        sys.path.insert(0, environment)
