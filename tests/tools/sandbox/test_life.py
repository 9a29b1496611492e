"""Calls end when they should, and so does the sandbox; what dies is replaced."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.sandbox.calls import fly, make_call, run, value_of, wait_until
from tests.tools.sandbox.conftest import ROOT, started
from tools import sandbox
from tools.sandbox import SandboxConfig, census, link
from tools.sandbox.runners import ZygoteRunner

SLEEP = "import time\ndef tool(seconds=60):\n    time.sleep(seconds)\n    return seconds"
ADD = "def tool(a, b):\n    return a + b"
LONELY_SERVER = Path(__file__).with_name("lonely_server.py")


@pytest.fixture
def two_places(config: SandboxConfig) -> Iterator[ZygoteRunner]:
    runner = started(dataclasses.replace(config, concurrency=2))
    yield runner
    runner.stop()


def _calls(runner: ZygoteRunner) -> int:
    return len(runner.link.flying)


def test_it_ends_a_call_whose_task_is_cancelled(running: None) -> None:
    async def cancel_late() -> None:
        task = asyncio.create_task(sandbox.run(make_call(SLEEP)))
        while not _current().link.flying:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_late())
    assert wait_until(lambda: _calls(_current()) == 0, 3)
    assert census.left_over(_current().link, 3) == []


def _current() -> ZygoteRunner:
    runner = sandbox._runner
    assert isinstance(runner, ZygoteRunner)
    return runner


def test_it_never_starts_a_call_that_was_cancelled_in_the_queue(two_places: ZygoteRunner) -> None:
    first = [fly(two_places, make_call(SLEEP, {"seconds": 0.5})) for _ in range(2)]
    queued = fly(two_places, make_call(SLEEP))
    two_places.end(queued)
    assert [flight.future.result(10).value for flight in first] == [0.5, 0.5]
    assert _calls(two_places) == 0
    assert not queued.started


def test_it_bounds_how_many_run_at_once(two_places: ZygoteRunner) -> None:
    flights = [fly(two_places, make_call(SLEEP, {"seconds": 0.1})) for _ in range(6)]
    most = 0
    while not all(flight.future.done() for flight in flights):
        most = max(most, _calls(two_places))
    assert most == 2
    assert [flight.future.result().value for flight in flights] == [0.1] * 6


def test_it_serves_threads_and_loops_at_once(running: None) -> None:
    async def several() -> list[int]:
        outcomes = await asyncio.gather(*(sandbox.run(make_call(ADD, {"a": n, "b": 1})) for n in range(5)))
        return [outcome.value for outcome in outcomes]

    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        loops = [threads.submit(asyncio.run, several()) for _ in range(3)]
        plain = [threads.submit(sandbox.run_blocking, make_call(ADD, {"a": n, "b": 5})) for n in range(5)]
        assert [loop.result() for loop in loops] == [[1, 2, 3, 4, 5]] * 3
        assert [one.result().value for one in plain] == [5, 6, 7, 8, 9]


def test_it_ends_hanging_tools_together(full: ZygoteRunner) -> None:
    source = """
        import signal, subprocess
        def tool():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            try:
                subprocess.Popen(["sleep", "600"])
            except OSError:
                print("refused")
            while True:
                pass
    """
    flights = [fly(full, make_call(source, timeout=0.7)) for _ in range(3)]
    outcomes = [flight.future.result(10) for flight in flights]
    assert {outcome.error.partition(": ")[2][:12] for outcome in outcomes} == {"TimeoutError"}
    assert {outcome.stdout for outcome in outcomes} == {"refused\n"}
    assert max(outcome.seconds for outcome in outcomes) < 3
    assert census.left_over(full.link, 3) == []


def test_it_ends_grandchildren_with_the_call(config: SandboxConfig) -> None:
    source = """
        import os, subprocess, time
        def tool():
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(0)
            return subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True).stdout
    """
    runner = started(dataclasses.replace(config, allow_subprocess=True))
    try:
        assert value_of(runner, source) == "hello\n"
        assert census.left_over(runner.link, 3) == []
        assert "MemoryError" in run(runner, "def tool():\n    return bytearray(10 ** 10)").error
    finally:
        runner.stop()


def _zygote(runner: ZygoteRunner) -> int:
    assert runner.link.process is not None
    return census.descendants(runner.link.process.pid)[0]


@pytest.mark.parametrize("who", ["zygote", "launcher"])
def test_it_starts_again_when_its_processes_are_killed(who: str, own: ZygoteRunner) -> None:
    flight = fly(own, make_call(SLEEP))
    assert own.link.process is not None
    old = own.link.process.pid
    everybody = [old, *census.descendants(old)]
    os.kill(_zygote(own) if who == "zygote" else old, signal.SIGKILL)
    error = "ChildProcessError: the sandbox ended while the tool was running"
    assert flight.future.result(10).error == f"Error executing function tool: {error}"
    assert value_of(own, ADD, {"a": 1, "b": 2}) == 3
    assert wait_until(lambda: not set(everybody) & set(census._parents()))


def test_it_replaces_a_zygote_that_does_not_answer(own: ZygoteRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "GRACE", 0.2)
    zygote = _zygote(own)
    os.kill(zygote, signal.SIGSTOP)
    assert "the sandbox ended" in run(own, SLEEP, timeout=0.2).error
    assert value_of(own, ADD, {"a": 1, "b": 2}) == 3
    assert zygote not in census._parents()


def test_it_tells_waiting_calls_that_it_was_stopped(two_places: ZygoteRunner) -> None:
    flights = [fly(two_places, make_call(SLEEP)) for _ in range(3)]
    process = two_places.link.process
    assert process is not None
    everybody = [process.pid, *census.descendants(process.pid)]
    two_places.stop()
    assert {type(flight.future.exception(5)) for flight in flights[2:]} == {sandbox.SandboxUnavailable}
    assert all("the sandbox ended" in flight.future.result(5).error for flight in flights[:2])
    assert not set(everybody) & set(census._parents())
    assert type(fly(two_places, make_call(ADD)).future.exception(5)) is sandbox.SandboxUnavailable


def test_it_outlives_the_thread_that_started_it(config: SandboxConfig) -> None:
    runners: list[ZygoteRunner] = []
    thread = threading.Thread(target=lambda: runners.append(started(config)))
    thread.start()
    thread.join()
    before = _zygote(runners[0])
    try:
        assert value_of(runners[0], ADD, {"a": 1, "b": 2}) == 3
        assert _zygote(runners[0]) == before
    finally:
        runners[0].stop()


@pytest.mark.parametrize(("what", "least"), [("kill", 3), ("unsafe", 1)])
def test_it_ends_with_a_server_that_is_killed(what: str, least: int, full: ZygoteRunner) -> None:
    command = [sys.executable, str(LONELY_SERVER), str(ROOT), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "running\n"
        assert wait_until(lambda: len(census.descendants(server.pid)) >= least)
        everybody = census.descendants(server.pid)
        server.kill()
    assert wait_until(lambda: not set(everybody) & set(census._parents()))


def test_it_belongs_to_the_process_that_started_it(full: ZygoteRunner) -> None:
    command = [sys.executable, str(LONELY_SERVER), str(ROOT), "fork"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["running", "forked: 3", "first: 3"], done.stderr


def test_it_passes_on_what_is_no_json(full: ZygoteRunner) -> None:
    flight = fly(full, make_call(ADD, {"a": object(), "b": 1}))
    assert isinstance(flight.future.exception(5), TypeError)
    assert value_of(full, ADD, {"a": 1, "b": 2}) == 3


def test_it_never_lets_a_tool_raise_its_time_limit(config: SandboxConfig) -> None:
    flight = sandbox.Flight(make_call(SLEEP, timeout=9999), config)
    assert flight.timeout == config.limits.timeout
