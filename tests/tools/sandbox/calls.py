"""Making calls of a runner, and waiting for what they leave."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest

from tools.sandbox import SandboxCall, SandboxOutcome
from tools.sandbox.flight import Flight
from tools.sandbox.runners import Runner

MARKS = {
    "DATABASE_URL": "postgres://SERVER-MARK-00000000000000aa@db/x",
    "LETTAWEB_SECRET_KEY": "SERVER-MARK-00000000000000bb",
    "ANTHROPIC_API_KEY": "SERVER-MARK-00000000000000cc",
}


def unavailable(reason: str) -> NoReturn:
    pytest.skip(reason)


def make_call(
    source: str, arguments: Mapping[str, Any] | None = None, *, function: str = "tool", **rest: Any
) -> SandboxCall:
    return SandboxCall(id="test", source=textwrap.dedent(source), function=function, arguments=arguments or {}, **rest)


def fly(runner: Runner, call: SandboxCall) -> Flight:
    flight = Flight(call, runner.config)
    runner.submit(flight)
    return flight


def run(
    runner: Runner, source: str, arguments: Mapping[str, Any] | None = None, *, function: str = "tool", **rest: Any
) -> SandboxOutcome:
    return fly(runner, make_call(source, arguments, function=function, **rest)).future.result(60)


def value_of(
    runner: Runner, source: str, arguments: Mapping[str, Any] | None = None, *, function: str = "tool", **rest: Any
) -> Any:
    outcome = run(runner, source, arguments, function=function, **rest)
    assert outcome.status == "success", (outcome.error, outcome.stderr)
    return outcome.value


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
