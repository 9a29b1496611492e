"""Attempts to gain rights or to reach rarely used parts of the kernel."""

from __future__ import annotations

from .table import Escape, gives

KERNEL = [
    Escape(
        "mounts and namespaces",
        """
numbers = facts["numbers"]
for name, arguments in {
    "mount": (b"x", b"/tmp", b"tmpfs", 0, None), "umount2": (b"/proc", 2), "pivot_root": (b"/tmp", b"/tmp"),
    "chroot": (b"/tmp",), "unshare": (0x10000000,), "setns": (0, 0), "move_mount": (-100, b"/", -100, b"/tmp", 0),
    "open_tree": (-100, b"/", 1), "fsopen": (b"tmpfs", 0), "mount_setattr": (-100, b"/", 0, None, 0)}.items():
    refused(numbers, name, *arguments)
refused(numbers, "clone", 0x10000000 | 17, None, None, None, None)
refused(numbers, "clone", 0x20000000 | 0x10000 | 17, None, None, None, None)
""",
        needs_seccomp=True,
    ),
    Escape(
        "users and capabilities",
        """
for name in ("setuid", "setgid"):
    refused(facts["numbers"], name, 0)
refused(facts["numbers"], "setresuid", 0, 0, 0)
refused(facts["numbers"], "setgroups", 0, None)
header, data = (0x20080522).to_bytes(4, "little") + bytes(4), ctypes.create_string_buffer(24)
refused(facts["numbers"], "capset", header, data)
libc.syscall(ctypes.c_long(facts["numbers"]["capget"]), header, data)
if any(data.raw):
    breaches.append(f"capabilities {data.raw!r}")
if libc.prctl(39, 0, 0, 0, 0) == 0:
    breaches.append("no_new_privs is off")
attempt("keep caps", lambda: 1 if libc.prctl(8, 1, 0, 0, 0) == 0 else os.stat("/nothing"))
if os.getuid() == 0:
    breaches.append("is root")
""",
        needs_seccomp=True,
    ),
    Escape(
        "rarely used system calls",
        """
for name in (
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "init_module", "finit_module", "kexec_load", "reboot", "swapon", "quotactl", "acct", "syslog", "personality",
    "seccomp", "io_setup", "modify_ldt", "iopl", "ioperm", "sethostname", "clock_settime", "adjtimex", "vmsplice",
    "splice", "tee", "process_madvise", "move_pages", "migrate_pages", "mbind", "landlock_restrict_self"):
    refused(facts["numbers"], name, 0, 0, 0, 0, 0)
refused({"unknown": 1000}, "unknown")
""",
        needs_seccomp=True,
    ),
    Escape(
        "ioctl and prctl",
        """
import fcntl
for number in (0x5412, 0x541C, 0x540E, 0x8933, 0x8914, 0x4004667F, 0x5423):
    attempt(hex(number), lambda: fcntl.ioctl(0, number, bytes(64)))
for option in (4, 22, 24, 35, 47, 0x59616D61):
    attempt(f"prctl {option}", lambda: 1 if libc.prctl(option, 1, 1, 0, 0) == 0 else os.stat("/nothing"))
""",
    ),
    Escape(
        "system calls of another kind",
        """
import mmap, platform
if platform.machine() != "x86_64":
    return [-38, -38]
code = mmap.mmap(-1, 4096, prot=7)
code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")
run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
old = run()
ctypes.set_errno(0)
new = libc.syscall(ctypes.c_long(0x40000000 + 39))
return [old, -ctypes.get_errno() if new < 0 else new]
""",
        gives([-38, -38]),
        needs_seccomp=True,
    ),
]
