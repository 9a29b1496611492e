"""The fork server: hands each call of the server to a waiting child, ends it at its deadline, says how it ended.

It never reads a request, only passes its descriptor on: nothing of one call is in memory that the next one inherits.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any

from . import child, landlock, linux, message

SPARES = 2
PAUSE = 0.05  # seconds
HIGH = 200


@dataclass
class Child:
    """A process that waits for a call, or runs one until ``deadline`` (monotonic seconds)."""

    pid: int
    watch: int
    channel: socket.socket
    call: str = ""
    deadline: float = 0.0
    ended: str = ""


class Zygote:
    """The children, and the loop over what they and the server say."""

    def __init__(self, control: socket.socket, plan: dict[str, Any]) -> None:
        self.control, self.plan = control, plan
        self.spares: list[Child] = []
        self.running: dict[str, Child] = {}
        self.watched: dict[int, Child] = {}
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)
        self.plan["zygote"] = os.getpid()
        self.common = child.common(plan)
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if plan["tier"] >= 3 else -1

    def serve(self) -> None:
        """Work until the server is gone."""
        gc.freeze()
        while True:
            for descriptor, _ in self.poll.poll(self._patience()):
                if descriptor == self.control.fileno():
                    if not self._listen():
                        return
                elif descriptor in self.watched:
                    self._bury(self.watched[descriptor])
            self._end_late_ones()

    def _patience(self) -> float | None:
        """Milliseconds until something is due; a missing spare is made as soon as nothing else is to do."""
        if len(self.spares) < SPARES and not self.poll.poll(0):
            self._add_spare()
        deadlines = [item.deadline for item in self.running.values() if not item.ended]
        if not deadlines:
            return None if len(self.spares) >= SPARES else 0
        return max(0.0, (min(deadlines) - time.monotonic()) * 1000 + 1) if len(self.spares) >= SPARES else 0

    def _add_spare(self) -> None:
        try:
            self.spares.append(self._fork())
        except OSError:
            time.sleep(PAUSE)  # no process or memory to be had: calls that come meanwhile are told so

    def _fork(self) -> Child:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self.own_pids >= 0:
            linux.unshare(linux.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            self._live(theirs)
        if self.own_pids >= 0:
            linux.setns(self.own_pids, linux.CLONE_NEWPID)
        theirs.close()
        born = Child(pid, os.pidfd_open(pid), ours)
        self.watched[born.watch] = born
        self.poll.register(born.watch, select.POLLIN)
        return born

    def _live(self, channel: socket.socket) -> None:
        """The child's whole life; never returns."""
        code = 3
        try:
            ruleset = self._ruleset()
            high = fcntl.fcntl(channel.fileno(), fcntl.F_DUPFD, HIGH)  # 3 and 4 may be paths of rules
            if ruleset >= 0:
                os.dup2(ruleset, 4)
            with socket.socket(fileno=os.dup2(high, 3)) as own:
                linux.close_from(5 if ruleset >= 0 else 4)
                prepared = child.prepare(self.plan, self.common, 4 if ruleset >= 0 else -1)
                header, descriptors = message.receive(own)
                if header is not None:
                    own.detach()
                    child.run(self.plan, prepared, header, descriptors)
                    code = 0
        except BaseException as error:
            child.tell_failure(error)
        finally:
            os._exit(code)

    def _ruleset(self) -> int:
        """Return the call's Landlock rules, added while their paths are still open; -1 for none."""
        if not self.common.rules:
            return -1
        ruleset = landlock.create()
        landlock.allow(ruleset, self.common.rules)
        return ruleset

    def _listen(self) -> bool:
        """Take one message of the server; false when it is gone."""
        content, descriptors = message.receive(self.control)
        if content is None:
            return False
        try:
            if content["do"] == "run":
                self._start(content, descriptors)
            elif content["do"] == "end" and content["id"] in self.running:
                self._end(self.running[content["id"]], "cancelled")
        finally:
            message.close_all(descriptors)
        return True

    def _start(self, header: dict[str, Any], descriptors: list[int]) -> None:
        try:
            chosen = self.spares.pop(0) if self.spares else self._fork()
        except OSError as error:
            message.send(self.control, {"done": header["id"], "failed": str(error)})
            return
        chosen.call = header["id"]
        chosen.deadline = time.monotonic() + header["timeout"]
        self.running[chosen.call] = chosen
        with contextlib.suppress(OSError):  # a child that died meanwhile is reported when it is buried
            message.send(chosen.channel, header, descriptors)

    def _end(self, one: Child, why: str) -> None:
        """End pid 1 of the call's pid namespace, and so everything in it."""
        one.ended = one.ended or why
        signal.pidfd_send_signal(one.watch, signal.SIGKILL)

    def _end_late_ones(self) -> None:
        now = time.monotonic()
        for one in self.running.values():
            if one.deadline <= now and not one.ended:
                self._end(one, "timeout")

    def _bury(self, one: Child) -> None:
        """Reap a child (the kernel lets it go only when its whole namespace is empty) and report its call."""
        _, status = os.waitpid(one.pid, 0)
        self.poll.unregister(one.watch)
        del self.watched[one.watch]
        os.close(one.watch)
        one.channel.close()
        if one in self.spares:
            self.spares.remove(one)
        if not one.call:
            time.sleep(PAUSE)  # a spare that cannot live: do not spin
            return
        del self.running[one.call]
        code = os.waitstatus_to_exitcode(status)
        message.send(self.control, {"done": one.call, "code": code, "ended": one.ended})
