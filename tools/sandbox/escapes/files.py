"""Attempts to read or write files that are not the call's own."""

from __future__ import annotations

from tools.sandbox.config import FULL

from .table import Escape, gives

FILES = [
    Escape(
        "environment of the own process",
        "return sorted(os.environ)",
        gives(["HOME", "LANG", "LETTA_AGENT_ID", "LETTA_TOOL_ID", "PATH", "TMPDIR"]),
    ),
    Escape(
        "/proc of other processes",
        """
for who in ("self", "1", str(os.getppid()), str(facts["server"])):
    for name in ("environ", "cmdline", "maps", "mem", "root/etc/shadow", "cwd/manage.py"):
        try:
            with open(f"/proc/{who}/{name}", "rb") as file:
                data = file.read(65536)
        except OSError:
            continue
        if facts["mark"].encode() in data or (b"=" in data and name == "environ" and b"DATABASE" in data):
            breaches.append(f"{who}/{name}")
        if name.startswith(("root", "cwd")):
            breaches.append(f"{who}/{name}")
attempt("fd", lambda: os.listdir(f"/proc/{facts['server']}/fd"))
""",
    ),
    Escape(
        "the server's files",
        """
for path in facts["files"]:
    attempt(path, lambda: open(path, "rb").read(100))
    attempt(f"{path} (write)", lambda: open(path, "ab").close())
for path in ("/root", "/home", "/var/log", "/var/lib", "/etc/shadow", "/etc/ssh", "/boot", "/sys", "/run", "/opt"):
    attempt(path, lambda: open(path).read() if os.path.isfile(path) else os.listdir(path))
attempt("..", lambda: open("../../../../../../etc/shadow").read())
""",
    ),
    Escape(
        "writing outside /tmp",
        """
for folder in ("/", "/usr/lib", "/etc", "/dev", "/dev/shm", "/proc", "/var/tmp", "/root", "/home", "/run"):
    attempt(folder, lambda: open(f"{folder}/written", "w").close())
    attempt(f"mkdir {folder}", lambda: os.mkdir(f"{folder}/made"))
import json
attempt("stdlib", lambda: open(json.__file__, "a").close())
attempt("chmod", lambda: os.chmod(json.__file__, 0o777))
attempt("utime", lambda: os.utime(json.__file__))
attempt("unlink", lambda: os.unlink(json.__file__))
attempt("truncate", lambda: os.truncate(json.__file__, 0))
attempt("passwd", lambda: open("/etc/passwd", "a").close())
""",
    ),
    Escape(
        "links out of /tmp",
        """
target = facts["files"][0]
for kind, make in (("symlink", os.symlink), ("link", os.link)):
    def follow():
        make(target, f"/tmp/{kind}")
        return open(f"/tmp/{kind}").read()
    attempt(kind, follow)
    attempt(f"{kind} of passwd", lambda: (make("/etc/passwd", f"/tmp/p{kind}"), open(f"/tmp/p{kind}", "a").close()))
attempt("rename", lambda: os.rename("/etc/passwd", "/tmp/passwd"))
""",
    ),
    Escape(
        "inherited descriptors",
        """
def exists(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
return [number for number in range(4096) if exists(number)]
""",
        gives([0, 1, 2, 63]),
    ),
    Escape(
        "open_by_handle_at",
        """
handle = ctypes.create_string_buffer(136)
ctypes.c_uint.from_buffer(handle).value = 128
mount = ctypes.c_int()
refused(facts["numbers"], "name_to_handle_at", -100, b"/tmp", handle, ctypes.byref(mount), 0)
refused(facts["numbers"], "open_by_handle_at", -100, handle, 0)
""",
        needs_seccomp=True,
    ),
    Escape(
        "devices",
        """
import stat
for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/kvm", "/dev/tty", "/dev/ptmx"):
    attempt(path, lambda: open(path, "rb").close())
attempt("mknod", lambda: os.mknod("/tmp/memory", stat.S_IFCHR | 0o600, os.makedev(1, 1)))
attempt("mkfifo", lambda: os.mkfifo("/tmp/fifo"))
""",
    ),
    Escape(
        "filling the disk",
        """
written = 0
def fill():
    nonlocal written
    for number in range(100):
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(9):
                written += file.write(bytes(1 << 20))
                file.flush()
    return "no limit"
attempt("fill", fill)
total = sum(entry.stat().st_size for entry in os.scandir("/tmp") if entry.is_file())
return breaches if 14 << 20 < total <= 16 << 20 else [*breaches, f"{total} bytes"]
""",
        tiers=(FULL,),
    ),
    Escape(
        "filling the inodes",
        """
made = 0
def fill():
    nonlocal made
    while made < 10000:
        open(f"/tmp/{made}", "w").close()
        made += 1
attempt("fill", fill)
return breaches if 4000 < made < 4100 else [*breaches, f"{made} files"]
""",
        tiers=(FULL,),
    ),
    Escape(
        "a sparse file of 1 TB",
        """
def grow():
    with open("/tmp/sparse", "wb") as file:
        file.truncate(1 << 40)
attempt("truncate", grow)
attempt("fallocate", lambda: os.posix_fallocate(os.open("/tmp/s", os.O_CREAT | os.O_RDWR), 0, 1 << 40))
attempt("stdout", lambda: os.ftruncate(1, 1 << 40))
attempt("result", lambda: os.ftruncate(63, 1 << 40))
""",
    ),
]
