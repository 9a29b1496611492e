"""Attempts to use up memory; each must end in an ordinary error of the tool."""

from __future__ import annotations

from .table import Escape, contained, fails

OUT_OF_MEMORY = fails("MemoryError")

MEMORY = [
    Escape("bytearray bomb", "held = []\nwhile True:\n    held.append(bytearray(16 << 20))", OUT_OF_MEMORY),
    Escape("text bomb", 'text = "x" * (1 << 20)\nwhile True:\n    text = text + text', OUT_OF_MEMORY),
    Escape("integer bomb", "return 1 << (1 << 36)", OUT_OF_MEMORY),
    Escape("list bomb", "held = [None]\nwhile True:\n    held = held * 4", OUT_OF_MEMORY),
    Escape(
        "mmap bombs",
        """
import mmap
for flags in (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS):
    held = []
    def bomb():
        while len(held) < 200:
            held.append(mmap.mmap(-1, 16 << 20, flags=flags))
        return "3 GB"
    attempt(f"mmap {flags}", bomb)
    for item in held:
        item.close()
""",
        contained,
    ),
    Escape(
        "memory files and shared memory",
        """
refused(facts["numbers"], "memfd_create", b"bomb", 0)
refused(facts["numbers"], "memfd_secret", 0)
refused(facts["numbers"], "shmget", 0, 1 << 24, 0o1600)
refused(facts["numbers"], "mlockall", 3)
refused(facts["numbers"], "mq_open", b"queue", 0o102, 0o600, None)
attempt("/dev/shm", lambda: open("/dev/shm/bomb", "wb").close())
""",
        needs_seccomp=True,
    ),
    Escape("100 MB as result", 'return "x" * (100 << 20)', fails("ResultTooLarge: the result is 10485", "MemoryError")),
    Escape(
        "text of endless objects",
        """
class Endless:
    def __str__(self):
        return "x" * (1 << 40)
    __repr__ = __str__
return Endless()
""",
        OUT_OF_MEMORY,
    ),
]
