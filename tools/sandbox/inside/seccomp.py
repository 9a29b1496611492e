"""The system call filter: an allowlist in BPF that answers ENOSYS or EPERM, and never kills.

Unknown calls get ENOSYS, so that a newer libc falls back to what it knows; calls that are known and refused get EPERM.
Only x86_64 is tested; the aarch64 table is generated in the same way and untested.
"""

from __future__ import annotations

import ctypes
import struct

from . import linux
from .syscalls import ALLOWED, ARCHITECTURES, FILE_ATTRIBUTES, NUMBERS, PROCESSES, REFUSED

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
EPERM = ERRNO | 1
ENOSYS = ERRNO | 38
LOAD, JEQ, JGE, JSET, RETURN, AND, JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54, 0x05
FARTHEST_JUMP = 255
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16

CLONE_THREAD = 0x00010000
# Every CLONE_NEW* flag; CLONE_NEWTIME (0x80) lies in the exit signal's byte of clone() and cannot be asked for there.
CLONE_NEW = 0x7E020000
SET_MODE_FILTER = 1
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)  # dup, flags, locks, get pipe size; no owners, leases, sizes
PRCTLS = (3, 15, 16, 0x53564D41)  # PR_GET_DUMPABLE PR_SET_NAME PR_GET_NAME PR_SET_VMA
AF_UNIX, AF_INET = 1, 2
SOCK_STREAM, SOCK_TYPE_MASK = 1, 0xF

Instruction = tuple[int, int, int, int]


def _load_argument(index: int) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS_AT + 8 * index)


def _answer(value: int) -> Instruction:
    return (RETURN, 0, 0, value)


def _one_of(index: int, values: tuple[int, ...]) -> list[Instruction]:
    """Allow when the argument is one of ``values``, else EPERM."""
    tests: list[Instruction] = []
    for value in values:
        tests += [(JEQ, 0, 1, value & 0xFFFFFFFF), _answer(ALLOW)]
    return [_load_argument(index), *tests, _answer(EPERM)]


def _clone(subprocesses: bool) -> list[Instruction]:
    """Threads always, processes where they are allowed, namespaces never."""
    new = [(JSET, 0, 1, CLONE_NEW), _answer(EPERM)]
    thread = [] if subprocesses else [(JSET, 1, 0, CLONE_THREAD), _answer(EPERM)]
    return [_load_argument(0), *new, *thread, _answer(ALLOW)]


def _socket(network: bool) -> list[Instruction]:
    """TCP over IPv4 where the call may use the proxy; nothing else."""
    if not network:
        return [_answer(EPERM)]
    family = [_load_argument(0), (JEQ, 1, 0, AF_INET), _answer(EPERM)]
    kind = [_load_argument(1), (AND, 0, 0, SOCK_TYPE_MASK), (JEQ, 1, 0, SOCK_STREAM), _answer(EPERM)]
    return [*family, *kind, _answer(ALLOW)]


def _own_limits() -> list[Instruction]:
    """prlimit64 may read its own limits, not set any."""
    pointer = ARGUMENTS_AT + 8 * 2
    tests: list[Instruction] = [_load_argument(0), (JEQ, 1, 0, 0), _answer(EPERM)]
    for half in (pointer, pointer + 4):
        tests += [(LOAD, 0, 0, half), (JEQ, 1, 0, 0), _answer(EPERM)]
    return [*tests, _answer(ALLOW)]


def _ruled(*, network: bool, subprocesses: bool, own: int) -> dict[str, list[Instruction]]:
    """The calls that depend on their arguments."""
    signal = [_answer(ALLOW)] if subprocesses else _one_of(0, (own,))
    return {
        "clone": _clone(subprocesses),
        "socket": _socket(network),
        "connect": [_answer(ALLOW if network else EPERM)],
        "socketpair": _one_of(0, (AF_UNIX,)),
        "ioctl": _one_of(1, IOCTLS),
        "fcntl": _one_of(1, FCNTLS),
        "prctl": _one_of(0, PRCTLS),
        "prlimit64": _own_limits(),
        **dict.fromkeys(("kill", "tgkill", "tkill"), signal),
    }


def _search(answers: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """A binary search for the call's number over (first number, what to do from there on)."""
    if len(answers) == 1:
        return answers[0][1]
    middle = len(answers) // 2
    left, right = _search(answers[:middle]), _search(answers[middle:])
    pivot = answers[middle][0]
    if len(left) <= FARTHEST_JUMP:
        return [(JGE, len(left), 0, pivot), *left, *right]
    return [(JGE, 0, 1, pivot), (JUMP, 0, 0, len(left)), *left, *right]


def _ranges(answers: dict[int, list[Instruction]]) -> list[tuple[int, list[Instruction]]]:
    """Join neighbours with the same answer; what lies between gets ENOSYS."""
    found: list[tuple[int, list[Instruction]]] = []
    unknown = [_answer(ENOSYS)]
    for number in range(max(answers) + 2):
        answer = answers.get(number, unknown)
        if not found or found[-1][1] != answer:
            found.append((number, answer))
    return found


def program(*, network: bool, subprocesses: bool, private_files: bool, own: int) -> bytes:
    """Return the filter's instructions for a process whose pid is ``own``, the only one that it may signal.

    ``private_files`` says that every file which it can name is its own: then it may change their modes and times.
    """
    plain = dict.fromkeys(ALLOWED, ALLOW) | dict.fromkeys(REFUSED, EPERM)
    plain |= dict.fromkeys(FILE_ATTRIBUTES, ALLOW if private_files else EPERM)
    plain |= dict.fromkeys(PROCESSES, ALLOW if subprocesses else EPERM)
    by_name = {name: [_answer(value)] for name, value in plain.items()}
    by_name |= _ruled(network=network, subprocesses=subprocesses, own=own)
    numbers = NUMBERS[linux.MACHINE]
    lines: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JEQ, 1, 0, ARCHITECTURES[linux.MACHINE]),
        _answer(ENOSYS),
        (LOAD, 0, 0, NUMBER_AT),
        *_search(_ranges({numbers[name]: answer for name, answer in by_name.items() if name in numbers})),
    ]  # calls of the x32 kind have numbers beyond the last one: ENOSYS
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def supported() -> bool:
    """Whether this machine's table exists."""
    return linux.MACHINE in NUMBERS


def apply(instructions: bytes) -> None:
    """Put the filter on this process and its threads to come; no_new_privs must be set."""
    loaded = _Program(len(instructions) // 8, instructions)
    result = linux.libc.syscall(
        ctypes.c_long(linux.SECCOMP), ctypes.c_long(SET_MODE_FILTER), ctypes.c_long(0), ctypes.byref(loaded)
    )
    linux.check(result, "seccomp")
