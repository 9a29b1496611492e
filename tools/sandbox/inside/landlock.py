"""Landlock: which files a call may open, whatever the mounts say."""

from __future__ import annotations

import functools
import os
import stat
import struct
from collections.abc import Iterable

from . import linux

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH, NET_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
ALL_OF_FIRST = (1 << 13) - 1
MAKE_DEVICES_AND_SOCKETS = (1 << 6) | (1 << 9) | (1 << 11)
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3

READ = READ_FILE | READ_DIR
LIST = READ_DIR
ALL = (1 << 16) - 1
RUN = READ | EXECUTE
FILE_ONLY = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
DEVICE = READ_FILE | WRITE_FILE


@functools.cache
def version() -> int:
    """Return the kernel's Landlock version, 0 when it has none."""
    try:
        return linux.syscall(CREATE_RULESET, None, 0, ASK_VERSION, what="landlock")
    except OSError:
        return 0


def _handled(known: int) -> int:
    rights = ALL_OF_FIRST
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        rights |= right if known >= since else 0
    return rights


def everything() -> int:
    """All that a call may do below its own /tmp."""
    return _handled(version()) & ~(MAKE_DEVICES_AND_SOCKETS | IOCTL_DEV | EXECUTE)


def rule_of(path: str, rights: int) -> bytes:
    """Return the rule for one path, empty when the path does not exist; it keeps the path open."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return b""
    rights &= _handled(version()) & (ALL if stat.S_ISDIR(os.fstat(descriptor).st_mode) else FILE_ONLY)
    return struct.pack("=Qi", rights, descriptor)


def create() -> int:
    """Return a new set of rules, which allows nothing yet: no file, no TCP port, no abstract socket."""
    known = version()
    network = BIND_TCP | CONNECT_TCP if known >= 4 else 0
    scopes = SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    attributes = struct.pack("=QQQ", _handled(known), network, scopes)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    return linux.syscall(CREATE_RULESET, attributes[:size], size, 0, what="landlock")


def allow(ruleset: int, rules: Iterable[bytes]) -> None:
    """Add rules of paths."""
    for rule in rules:
        if rule:
            linux.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0, what="landlock rule")


def allow_port(ruleset: int, port: int) -> None:
    """Allow TCP connections to one port, where Landlock knows of ports."""
    if version() >= 4:
        linux.syscall(ADD_RULE, ruleset, NET_PORT, struct.pack("=QQ", CONNECT_TCP, port), 0, what="landlock port")


def enforce(ruleset: int) -> None:
    """Restrict this process to the rules, for good; no_new_privs must be set."""
    linux.syscall(RESTRICT_SELF, ruleset, 0, what="landlock")
    os.close(ruleset)
