"""One writer at a time, each in its turn, over threads and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lettaweb.lib.gate import Gate, GateClosed

HOLD = """
import sys
from lettaweb.lib.gate import Gate
gate = Gate(sys.argv[1]); gate.acquire(5); print("held", flush=True); sys.stdin.read()
"""
BULK = """
import sys, time
from lettaweb.lib.gate import Gate
gate = Gate(sys.argv[1])
print("started", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    gate.acquire(5); time.sleep(0.01); gate.release()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "write.gate")


def start(script: str, path: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_it_excludes_two_threads_of_one_process(path: str) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        gate = Gate(path)
        for _ in range(50):
            gate.acquire(10)
            inside += 1
            most = max(most, inside)
            time.sleep(0.0005)
            inside -= 1
            gate.release()
        gate.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_it_gives_up_in_time(path: str) -> None:
    first, second = Gate(path), Gate(path)
    first.acquire(1)
    started = time.monotonic()
    with pytest.raises(GateClosed):
        second.acquire(0.2)
    assert 0.15 < time.monotonic() - started < 2
    first.release()
    second.acquire(1)
    assert second.held


def test_it_is_free_again_when_its_holder_is_killed(path: str) -> None:
    holder = start(HOLD, path)
    gate = Gate(path)
    with pytest.raises(GateClosed):
        gate.acquire(0.1)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    gate.acquire(1)


def test_it_lets_a_small_writer_in_beside_a_bulk_writer(path: str) -> None:
    bulk = start(BULK, path)
    gate, waits = Gate(path), []
    try:
        for _ in range(20):
            started = time.monotonic()
            gate.acquire(5)
            gate.release()
            waits.append(time.monotonic() - started)
    finally:
        bulk.kill()
        bulk.wait()
    assert sorted(waits)[10] < 0.2, waits


def test_it_is_not_inherited_by_a_forked_child(path: str) -> None:
    gate = Gate(path)
    gate.acquire(1)
    gate.release()
    child = os.fork()
    if child == 0:
        gate.acquire(5)
        time.sleep(0.5)
        os._exit(0)
    deadline = time.monotonic() + 3
    refused = False
    while time.monotonic() < deadline and not refused:
        try:
            gate.acquire(0.01)
            gate.release()
        except GateClosed:
            refused = True
    os.waitpid(child, 0)
    assert refused
