"""System calls that Python's standard library lacks, through ctypes; raises OSError when the kernel refuses."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
KEPT_MOUNT_FLAGS = {1: MS_RDONLY, 2: MS_NOSUID, 4: MS_NODEV, 8: MS_NOEXEC, 1024: 1024, 2048: 2048, 4096: MS_RELATIME}
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECURE_KEEP_CAPS_AND_NO_FIXUP = 0x10 | 0x04

M_ARENA_MAX = -8

MACHINE = platform.machine()
# mount_setattr, landlock_* and close_range have the same numbers on every architecture.
PIVOT_ROOT, SETNS, SECCOMP, CAPSET = {
    "x86_64": (155, 308, 317, 126),
    "aarch64": (41, 268, 277, 91),
}.get(MACHINE, (-1, -1, -1, -1))
MOUNT_SETATTR = 442
CLOSE_RANGE = 436
AT_RECURSIVE = 0x8000

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """Return ``result``, or raise the OSError that errno names when it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | bytes | None, what: str = "syscall") -> int:
    """Make a raw system call; integers travel as longs."""
    longs = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return check(int(libc.syscall(ctypes.c_long(number), *longs)), what)


def prctl(option: int, value: int = 0, third: int = 0, *, what: str = "prctl") -> int:
    """Set one attribute of this process."""
    unused = ctypes.c_ulong(0)
    return check(libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), unused, unused), what)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    check(libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace of ``descriptor``."""
    check(libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, *, options: str = "") -> None:
    """Mount ``source`` on ``target``."""
    result = libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    check(result, f"mount {target}")


def make_read_only(target: str) -> None:
    """Make the mount at ``target``, and what is mounted below it, read-only without set-uid and devices."""
    attributes = (MS_RDONLY | MS_NOSUID | MS_NODEV).to_bytes(8, "little") + bytes(24)
    with contextlib.suppress(OSError):
        syscall(MOUNT_SETATTR, -100, target.encode(), AT_RECURSIVE, attributes, 32, what="mount_setattr")
        return
    held = os.statvfs(target).f_flag
    kept = sum(flag for bit, flag in KEPT_MOUNT_FLAGS.items() if held & bit)
    mount("", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def change_root(target: str) -> None:
    """Make ``target`` (a mount) the root and let go of the old one."""
    os.chdir(target)
    syscall(PIVOT_ROOT, b".", b".", what="pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent ends; end at once when it has ended already."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def drop_capabilities() -> None:
    """Give up every capability for good: no_new_privs, which must be set, lets no program gain any."""
    with contextlib.suppress(OSError):
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (0x20080522).to_bytes(4, "little") + bytes(4)
    syscall(CAPSET, header, bytes(24), what="capset")


def become(user: int) -> None:
    """Change the user and group to ``user`` and keep the capabilities that are held in this user namespace."""
    prctl(PR_SET_SECUREBITS, SECURE_KEEP_CAPS_AND_NO_FIXUP, what="securebits")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    prctl(PR_SET_DUMPABLE, 1)


def close_from(first: int) -> None:
    """Close every file descriptor from ``first`` on."""
    try:
        syscall(CLOSE_RANGE, first, 0x7FFFFFFF, 0, what="close_range")
    except OSError:
        os.closerange(first, 65536)


def limit_malloc_arenas(count: int) -> None:
    """Let malloc use at most ``count`` arenas: each reserves 64 MiB of address space."""
    with contextlib.suppress(AttributeError):
        libc.mallopt(M_ARENA_MAX, count)
