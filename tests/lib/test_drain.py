"""A drain reaches the processes that were forked: they do not sleep into it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.servers import ROOT

PROGRAM = """
import os
from lettaweb.lib import drain
drain.share()
ready, told = os.pipe()
child = os.fork()
if not child:
    assert not drain.draining()
    os.write(told, b".")
    os._exit(7 if drain.rest(60) and drain.draining() else 1)
os.read(ready, 1)
drain.begin()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_wakes_when_the_drain_begins() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.stdout.strip(), done.stderr) == ("7", "")


KILLED = """
import os, signal
from lettaweb.lib import drain
drain.share()
child = os.fork()
if not child:
    drain.rest(60)
    os._exit(1)
state = ""
while state != "S":  # it rests
    state = open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0]
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
drain.begin()
print(drain.draining())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_begins_though_a_process_that_rested_was_killed() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.stdout.strip(), done.stderr) == ("True", "")
