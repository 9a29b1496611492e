"""The system call filter: an allowlist in BPF that answers ENOSYS or EPERM, and never kills.

Unknown calls get ENOSYS, so that a newer libc falls back to what it knows; calls that are known and refused get EPERM.
Only x86_64 is tested; the aarch64 table is generated in the same way and untested.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import linux
from .syscalls import ALLOWED, ARCHITECTURES, FILE_ATTRIBUTES, NUMBERS, PROCESSES, REFUSED

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
EPERM = ERRNO | 1
ENOSYS = ERRNO | 38
LOAD, JEQ, JGE, JSET, RETURN, AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16

X32_BIT = 0x40000000
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


def _if_number(name: str, body: list[Instruction]) -> list[Instruction]:
    """Run ``body`` (which must return) for the call ``name``; nothing where the architecture lacks the call."""
    number = NUMBERS[linux.MACHINE].get(name)
    return [] if number is None else [(JEQ, 0, len(body), number), *body]


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


def _ruled(network: bool, subprocesses: bool) -> list[Instruction]:
    """The calls that depend on their arguments."""
    own = (os.getpid(),)
    signal = [_answer(ALLOW)] if subprocesses else _one_of(0, own)
    program = [
        *_if_number("clone", _clone(subprocesses)),
        *_if_number("socket", _socket(network)),
        *_if_number("connect", [_answer(ALLOW if network else EPERM)]),
        *_if_number("socketpair", _one_of(0, (AF_UNIX,))),
        *_if_number("ioctl", _one_of(1, IOCTLS)),
        *_if_number("fcntl", _one_of(1, FCNTLS)),
        *_if_number("prctl", _one_of(0, PRCTLS)),
        *_if_number("prlimit64", _own_limits()),
    ]
    for name in ("kill", "tgkill", "tkill"):
        program += _if_number(name, signal)
    return program


def program(*, network: bool, subprocesses: bool, private_files: bool) -> bytes:
    """Return the filter's instructions for this process (its own pid is the only one that it may signal).

    ``private_files`` says that every file which it can name is its own: then it may change their modes and times.
    """
    numbers = NUMBERS[linux.MACHINE]
    allowed = set(ALLOWED) | (set(FILE_ATTRIBUTES) if private_files else set())
    refused = set(REFUSED) | (set() if private_files else set(FILE_ATTRIBUTES))
    (allowed if subprocesses else refused).update(PROCESSES)
    lines: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JEQ, 1, 0, ARCHITECTURES[linux.MACHINE]),
        _answer(ENOSYS),
        (LOAD, 0, 0, NUMBER_AT),
        (JGE, 0, 1, X32_BIT),
        _answer(ENOSYS),
    ]
    for number in sorted(numbers[name] for name in allowed if name in numbers):
        lines += [(JEQ, 0, 1, number), _answer(ALLOW)]
    lines += _ruled(network, subprocesses)
    for number in sorted(numbers[name] for name in refused if name in numbers):
        lines += [(JEQ, 0, 1, number), _answer(EPERM)]
    lines.append(_answer(ENOSYS))
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
