"""The files that a call can see: a read-only root of bind mounts (tier 3), and the same list for Landlock."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from . import landlock, linux

ENVIRONMENTS = "/envs"
HIDDEN = "size=4k,nr_inodes=2,mode=000"
ROOT = "size=1m,nr_inodes=4096,mode=755"
BASE = "/tmp"  # any folder that surely exists: the new root is mounted over it
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/localtime")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")
PROCESS_FILES = ("self", "cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")
PROGRAMS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
WRITTEN = {
    "/etc/passwd": "tool:x:{user}:{user}:tool:/tmp:/bin/false\n",
    "/etc/group": "tool:x:{user}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def readable(plan: dict[str, Any]) -> list[str]:
    """Return the host paths that every call may read."""
    programs = PROGRAMS if plan["subprocesses"] else ()
    return list(dict.fromkeys([*plan["libraries"], *SYSTEM_FILES, *programs]))


def build(plan: dict[str, Any]) -> None:
    """Make the new root and change to it; must run as pid 1 of the new pid namespace."""
    linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    wanted = {path: path for path in [*readable(plan), *plan["packages"][:1], *DEVICES]}
    if plan["environments"]:
        wanted[ENVIRONMENTS] = plan["environments"]
    sources = {path: os.open(source, os.O_PATH) for path, source in wanted.items() if os.path.exists(source)}
    links = {path: os.readlink(path) for path in SYSTEM_LINKS if os.path.islink(path)}
    linux.mount("sandbox", BASE, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options=ROOT)
    for path, target in links.items():
        _parent(path)
        os.symlink(target, BASE + path)
    for path, source in sources.items():
        _bind(path, source)
    _write_files(plan)
    for folder in ("/proc", "/tmp"):
        os.makedirs(BASE + folder, exist_ok=True)
    linux.mount("proc", f"{BASE}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    for path in plan["hidden"]:
        _hide(path)
    linux.change_root(BASE)
    flags = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("", "/", "", flags)


def _parent(path: str) -> None:
    os.makedirs(BASE + os.path.dirname(path), exist_ok=True)


def _bind(path: str, source: int) -> None:
    """Bind one path at the same place below the new root, unless a parent of it is there already."""
    target = BASE + path
    try:
        if os.path.lexists(target):
            return
        _parent(path)
        if os.path.isdir(f"/proc/self/fd/{source}"):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        linux.mount(f"/proc/self/fd/{source}", target, "", linux.MS_BIND | linux.MS_REC)
        if path not in DEVICES:
            linux.make_read_only(target)
    finally:
        os.close(source)


def _write_files(plan: dict[str, Any]) -> None:
    for path, text in WRITTEN.items():
        _parent(path)
        with open(BASE + path, "w", encoding="utf-8") as file:
            file.write(text.format(user=plan["user"]))


def _hide(path: str) -> None:
    """Cover a path that lies inside a bound folder; folders of the new root itself hold nothing but bound ones."""
    target = BASE + path
    if not os.path.lexists(target) or os.lstat(target).st_dev == os.lstat(BASE).st_dev:
        return
    if os.path.isdir(target):
        linux.mount("hidden", target, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID, options=HIDDEN)
    else:
        linux.mount(f"{BASE}/dev/null", target, "", linux.MS_BIND)


def environment_inside(plan: dict[str, Any], environment: str) -> str:
    """Return where a call finds its pip environment."""
    return f"{ENVIRONMENTS}/{os.path.basename(environment)}" if environment and plan["tier"] >= 3 else environment


def mount_own(plan: dict[str, Any]) -> None:
    """Give a call its own /tmp and its own /proc."""
    limits = plan["limits"]
    below = [path for path in [*plan["libraries"], *plan["packages"][:1]] if path.startswith("/tmp/")]
    kept = {path: os.open(path, os.O_PATH) for path in below}  # Python may be installed in /tmp
    options = f"size={limits['tmp']},nr_inodes={limits['inodes']},mode=700,uid={os.getuid()},gid={os.getgid()}"
    linux.mount("tmp", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, options=options)
    for path, source in kept.items():
        os.makedirs(path)
        linux.mount(f"/proc/self/fd/{source}", path, "", linux.MS_BIND | linux.MS_REC)
        os.close(source)
    os.chdir("/tmp")
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def common_rules(plan: dict[str, Any]) -> list[bytes]:
    """Return the Landlock rules of what every call may read, with the paths open."""
    read = landlock.RUN if plan["subprocesses"] else landlock.READ
    wanted = [(path, read) for path in readable(plan)]
    wanted += [(path, landlock.READ) for path in WRITTEN if plan["tier"] >= 3]
    wanted += [(path, landlock.DEVICE) for path in DEVICES]
    site, *packages = plan["packages"] or [""]
    wanted += [(path, landlock.READ) for path in packages]
    wanted += [(site, landlock.LIST)] if site else []
    return [landlock.rule_of(path, rights) for path, rights in wanted]


def own_rules() -> list[bytes]:
    """Return the rules of a call's own /tmp and of what it may know of itself."""
    processes = [landlock.rule_of(f"/proc/{name}", landlock.READ) for name in PROCESS_FILES]
    return [landlock.rule_of("/tmp", landlock.everything()), *processes]


def raise_oom_score() -> None:
    """Ask the kernel to end this process first when memory is short."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
