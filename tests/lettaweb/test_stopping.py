"""What tells a process to stop: signals, at any moment of what it is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from lettaweb.server.stopping import Stop
from tests.servers import ROOT

# At every line and call of a wait and of a handler another signal comes.
EVERYWHERE = """
import signal, sys
from lettaweb.server.stopping import Stop

came = 0

def trace(frame, event, argument):
    global came
    if came < 300:
        came += 1
        signal.raise_signal(signal.SIGTERM if came % 2 else signal.SIGINT)
    return trace

stop = Stop()
stop.at_signals()
sys.settrace(trace)
told = [stop.wait(60) for _ in range(9)]
sys.settrace(None)
print(all(told), stop.is_set(), came)
"""


def test_signals_that_interrupt_each_other_set_it() -> None:
    done = subprocess.run([sys.executable, "-c", EVERYWHERE], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    *told, came = done.stdout.split()
    assert told == ["True"] * 2
    assert int(came) > 10


def test_who_waits_wakes() -> None:
    stop = Stop()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    assert stop.wait(60) is True
    assert time.monotonic() - began < 30


def test_a_wait_ends_by_itself_and_says_that_nothing_was_told() -> None:
    stop = Stop()
    assert stop.wait(0.01) is False
    assert not stop.is_set()


def test_it_stays_set_however_often_it_is_told() -> None:
    stop = Stop()
    for _ in range(100_000):  # more than a pipe holds
        stop.set()
    assert [stop.wait(60) for _ in range(30)] == [True] * 30


def test_what_a_fork_was_told_is_not_told_to_the_parent() -> None:
    stop = Stop()
    child = os.fork()
    if not child:
        stop.set()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert stop.wait(0.2) is False
    began = time.monotonic()
    assert stop.wait(0.2) is False
    assert time.monotonic() - began >= 0.2  # awake once for nothing, and not for ever
