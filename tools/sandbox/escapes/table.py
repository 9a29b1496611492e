"""What an attempt to break out is, and how to tell that it failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.sandbox.base import SandboxOutcome
from tools.sandbox.config import FULL, LANDLOCK

Check = Callable[[SandboxOutcome], str]

# In front of every source: ``attempt`` notes what should have raised and did not, ``refused`` the same for raw calls.
PREAMBLE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
breaches = []

def attempt(name, action):
    try:
        value = action()
    except (OSError, ImportError, AttributeError, ValueError, MemoryError):
        return
    breaches.append(f"{name}: {value!r}"[:300])

def refused(numbers, name, *arguments):
    number = numbers.get(name)
    if number is None:
        return
    ctypes.set_errno(0)
    longs = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result = libc.syscall(ctypes.c_long(number), *longs)
    if result >= 0 or ctypes.get_errno() not in (1, 38):
        breaches.append(f"{name}: {result}, errno {ctypes.get_errno()}")
"""


def contained(outcome: SandboxOutcome) -> str:
    """Pass when the attempt ran to its end and nothing in it worked."""
    if outcome.status != "success":
        return f"ended with {outcome.error}"
    return "" if outcome.value == [] else "; ".join(map(str, outcome.value))


def gives(value: object) -> Check:
    """Pass when the call returns exactly ``value``."""
    return lambda outcome: "" if outcome.status == "success" and outcome.value == value else _shown(outcome)


def fails(*texts: str) -> Check:
    """Pass when the call fails with one of ``texts`` in its error."""
    return lambda outcome: (
        "" if outcome.status == "error" and any(t in outcome.error for t in texts) else _shown(outcome)
    )


def _shown(outcome: SandboxOutcome) -> str:
    return f"{outcome.status}: {str(outcome.value)[:200]} {outcome.error[:300]}"


@dataclass(frozen=True, slots=True)
class Escape:
    """One attempt: the body of ``escape(facts)``, run after ``PREAMBLE``; ``check`` returns what is wrong, or nothing.

    ``facts`` are what an attacker could know of the server: its pid, a listening port, paths, call numbers.
    ``needs_seccomp`` marks those that succeed when the filter is off.
    """

    name: str
    body: str
    check: Check = contained
    timeout: float = 10.0
    network: tuple[str, ...] = ()
    tiers: tuple[int, ...] = (FULL, LANDLOCK)
    needs_seccomp: bool = False
    first: str = ""
    env: tuple[tuple[str, str], ...] = ()
    at_import: str = ""

    @property
    def source(self) -> str:
        """The tool's source."""
        return self.at_import + _source(self.body)

    @property
    def first_source(self) -> str:
        """The source of the call that runs before, whose traces the attempt looks for; empty for none."""
        return _source(self.first) if self.first else ""


def _source(body: str) -> str:
    lines = body.strip("\n").splitlines()
    return PREAMBLE + "\ndef escape(facts):\n" + "\n".join(f"    {line}" for line in lines) + "\n    return breaches\n"
