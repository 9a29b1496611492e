"""Attempts on other processes, to multiply, to outlive the call, and not to end."""

from __future__ import annotations

from tools.sandbox.config import FULL

from .table import Escape, fails

TIMED_OUT = fails("TimeoutError: the tool did not finish within")
SHORT = 0.6

PROCESSES = [
    Escape(
        "ptrace and process_vm_readv",
        """
numbers = facts["numbers"]
for pid in (facts["server"], os.getppid() or 1, 1):
    refused(numbers, "ptrace", 16, pid, 0, 0)
    refused(numbers, "process_vm_readv", pid, None, 0, None, 0, 0)
    refused(numbers, "pidfd_open", pid, 0)
refused(numbers, "kcmp", 1, 1, 0, 0, 0)
""",
        needs_seccomp=True,
    ),
    Escape(
        "signals to other processes",
        """
import signal
for pid in (facts["server"], os.getppid() or 2, 2, -1, 0, -os.getpgrp()):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        attempt(f"kill {pid}", lambda: os.kill(pid, number))
refused(facts["numbers"], "tgkill", facts["server"], facts["server"], 9)
refused(facts["numbers"], "tkill", facts["server"], 9)
refused(facts["numbers"], "rt_sigqueueinfo", facts["server"], 9, None)
""",
    ),
    Escape(
        "fork bomb",
        """
def bomb():
    for number in range(1000):
        if os.fork() == 0:
            import time
            time.sleep(30)
            os._exit(0)
    return "1000 processes"
attempt("fork", bomb)
refused(facts["numbers"], "vfork")
refused(facts["numbers"], "clone3", None, 0)
import subprocess, multiprocessing
attempt("subprocess", lambda: subprocess.Popen(["/bin/sleep", "30"]))
attempt("posix_spawn", lambda: os.posix_spawn("/bin/sleep", ["sleep", "30"], {}))
attempt("system", lambda: 1 / 0 if os.system("sleep 1") == 0 else os.stat("/nothing"))
""",
    ),
    Escape(
        "programs, also set-uid ones",
        """
for path in ("/bin/sh", "/usr/bin/su", "/usr/bin/passwd", "/bin/mount", "/usr/bin/python3"):
    attempt(path, lambda: os.execv(path, [path]))
attempt("fexecve", lambda: os.execve(os.open("/bin/sh", os.O_RDONLY), ["sh"], {}))
""",
    ),
    Escape(
        "thread bomb",
        """
import threading
threading.stack_size(65536)
started = 0
try:
    while started < 5000:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        started += 1
except RuntimeError:
    pass
return [] if 10 <= started < 64 else [f"{started} threads"]
""",
        tiers=(FULL,),
    ),
    Escape(
        "thread bomb without a user namespace",
        """
import threading
threading.stack_size(65536)
started = 0
try:
    while started < 5000:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        started += 1
except RuntimeError:
    pass
return [] if started < 2000 else [f"{started} threads"]
""",
    ),
    Escape("loop in Python", "while True:\n    pass", TIMED_OUT, SHORT),
    Escape("loop in a regular expression", 'import re\nre.match(r"(a*)*b", "a" * 60)', TIMED_OUT, SHORT),
    Escape("loop in pow", "pow(3, 10 ** 9)", TIMED_OUT, SHORT),
    Escape(
        "ignoring signals",
        """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass
""",
        TIMED_OUT,
        SHORT,
    ),
    Escape("loop at import", "return 1", TIMED_OUT, SHORT, at_import="while True:\n    pass\n"),
    Escape("blocked read", "reader, writer = os.pipe()\nos.read(reader, 1)", TIMED_OUT, SHORT),
    Escape(
        "threads that stay",
        "import threading\nfor _ in range(5):\n    threading.Thread(target=threading.Event().wait).start()",
    ),
    Escape(
        "own limits",
        """
import resource
for name in ("AS", "DATA", "NPROC", "NOFILE", "FSIZE", "CORE", "MEMLOCK", "RTPRIO"):
    kind = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(kind)
    if name not in ("RTPRIO",) and hard == resource.RLIM_INFINITY:
        breaches.append(f"{name} has no limit")
    attempt(name, lambda: resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
attempt("nice", lambda: os.nice(-10))
attempt("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
""",
    ),
    Escape(
        "descriptors without end",
        """
import select, signal
numbers = facts["numbers"]
for name, make in (("eventfd", lambda: os.eventfd(0)), ("epoll", lambda: select.epoll()), ("pipe", os.pipe)):
    held = []
    def exhaust():
        while len(held) < 1000:
            held.append(make())
        return "1000 of them"
    attempt(name, exhaust)
    for item in held:
        item.close() if name == "epoll" else [os.close(end) for end in (item if name == "pipe" else [item])]
refused(numbers, "inotify_init1", 0)
refused(numbers, "fanotify_init", 0, 0)
""",
    ),
    Escape(
        "memory in pipes",
        """
import fcntl
ends = os.pipe()
attempt("pipe size", lambda: fcntl.fcntl(ends[1], 1031, 1 << 20))
""",
        needs_seccomp=True,
    ),
]
