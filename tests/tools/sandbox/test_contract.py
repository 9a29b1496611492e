"""What a tool can rely on: its arguments, its agent, its environment, and what becomes of its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.sandbox.calls import make_call, run, value_of
from tools.sandbox.flight import environment
from tools.sandbox.runners import ZygoteRunner

CASES = Path(__file__).resolve().parents[2] / "cases" / "tools"
STATE = {
    "id": "agent-1",
    "name": "Ada",
    "memory": {"blocks": [{"label": "human", "value": "old"}, {"label": "persona", "value": "kind"}]},
    "tags": [{"text": "x"}],
}

RESULTS: list[tuple[str, str, Any]] = [
    ("none", "None", None),
    ("text", "'Grüße 🎉'", "Grüße 🎉"),
    ("boolean", "True", True),
    ("float", "1.5", 1.5),
    ("nan", "[float('nan'), float('inf'), -float('inf')]", ["NaN", "Infinity", "-Infinity"]),
    ("large integer", "2 ** 70", str(2**70)),
    ("largest integer", "[2 ** 63 - 1, -2 ** 63]", [2**63 - 1, str(-(2**63))]),
    ("number of another kind", "Whole()", 7),
    ("tuple", "(1, (2, 3))", [1, [2, 3]]),
    ("set", "{5}", [5]),
    ("keys", "{1: 'a', None: 'b', (1, 2): 'c'}", {"1": "a", "None": "b", "(1, 2)": "c"}),
    ("enum", "enum.Enum('Colour', {'RED': 'red'}).RED", "red"),
    ("date", "datetime.datetime(2026, 11, 30, 12, 0)", "2026-11-30T12:00:00"),
    ("decimal", "decimal.Decimal('1.10')", "1.10"),
    ("uuid", "uuid.UUID(int=5)", "00000000-0000-0000-0000-000000000005"),
    ("path", "pathlib.Path('/tmp/x')", "/tmp/x"),
    ("bytes", "b'abc'", "abc"),
    ("odd bytes", "b'\\xff'", "/w=="),
    ("dataclass", "Point(1, [Point(2, None)])", {"x": 1, "y": [{"x": 2, "y": None}]}),
    ("namedtuple", "collections.namedtuple('P', 'a b')(1, 2)", {"a": 1, "b": 2}),
    ("other object", "Odd()", "odd one"),
    ("class", "Point", "<class 'letta_tool.Point'>"),
    ("generator", "(n * n for n in range(3))", [0, 1, 4]),
    ("reduce", "Reducing()", "reducing"),
]
PRELUDE = """
from __future__ import annotations
import collections, dataclasses, datetime, decimal, enum, numbers, os, pathlib, uuid

@dataclasses.dataclass
class Point:
    x: int
    y: list[Point] | None = None

class Odd:
    def __str__(self):
        return "odd one"

class Whole:
    def __int__(self):
        return 7

numbers.Integral.register(Whole)

class Reducing:
    def __reduce__(self):
        return (os._exit, (5,))
    def __str__(self):
        return "reducing"

def tool():
    return {}
"""


@pytest.mark.parametrize(("expression", "expected"), [case[1:] for case in RESULTS], ids=[case[0] for case in RESULTS])
def test_it_returns_values_as_json(expression: str, expected: Any, full: ZygoteRunner) -> None:
    source = PRELUDE.replace("return {}", f"return {expression}")
    assert value_of(full, source) == expected


def test_it_returns_pydantic_models(full: ZygoteRunner) -> None:
    pytest.importorskip("pydantic")
    source = """
        from decimal import Decimal
        from pydantic import BaseModel
        class Price(BaseModel):
            amount: Decimal
        def tool():
            return [Price(amount="1.50")]
    """
    assert value_of(full, source) == [{"amount": "1.50"}]


FAILURES = [
    ("def tool():\n    raise ValueError('bad\\nthing')", "ValueError: bad\nthing"),
    ("def tool():\n    return {}['x']", "KeyError: 'x'"),
    ("def tool(a):\n    pass", "TypeError: tool() missing 1 required positional argument: 'a'"),
    ("def other():\n    pass", "NameError: the source defines no function tool"),
    ("tool = 5", "NameError: the source defines no function tool"),
    ("def tool(:\n    pass", "SyntaxError: invalid syntax (tool.py, line 1)"),
    ("import no_such_module\ndef tool():\n    pass", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("async def tool():\n    raise OSError('x')", "OSError: x"),
    ("def tool():\n    yield 1\n    raise RuntimeError('late')", "RuntimeError: late"),
    ("def tool():\n    raise KeyboardInterrupt", "KeyboardInterrupt: "),
    ("def tool():\n    raise Exception('x' * 5000)", "Exception: " + "x" * 2000),
]


@pytest.mark.parametrize(("source", "text"), FAILURES)
def test_it_tells_failures(source: str, text: str, full: ZygoteRunner) -> None:
    outcome = run(full, source)
    assert (outcome.status, outcome.error) == ("error", f"Error executing function tool: {text}"[:1000])


def test_it_shows_only_the_tools_own_lines(full: ZygoteRunner) -> None:
    outcome = run(full, "import json\ndef helper():\n    json.loads('{')\ndef tool():\n    helper()")
    lines = [line.strip() for line in outcome.stderr.splitlines() if not set(line) <= set(" ^~")]
    assert lines[1:5] == [
        'File "tool.py", line 5, in tool',
        "helper()",
        'File "tool.py", line 3, in helper',
        "json.loads('{')",
    ]
    assert "json.decoder.JSONDecodeError" in outcome.stderr
    assert "invoke" not in outcome.stderr


def test_it_keeps_output_and_result_apart(full: ZygoteRunner) -> None:
    source = (CASES / "t27_prints_and_returns.py").read_text(encoding="utf-8")
    outcome = run(full, source, {"n": 3}, function="noisy")
    assert outcome.value == {"n": 3, "ok": True, "none": None}
    assert outcome.stderr == "warn\n"
    assert set(outcome.stdout.splitlines()) == {'{"result": "fake"}', "raw \ufffd", "0", "1", "2"}


def test_it_keeps_what_was_printed_before_the_time_was_up(full: ZygoteRunner) -> None:
    outcome = run(full, "def tool():\n    print('so far')\n    while True: pass", timeout=0.5)
    assert outcome.error == "Error executing function tool: TimeoutError: the tool did not finish within 0.5 seconds"
    assert outcome.stdout == "so far\n"
    assert 0.4 < outcome.seconds < 5


def test_it_collects_asynchronous_generators(full: ZygoteRunner) -> None:
    assert value_of(full, "async def tool():\n    for n in range(3):\n        yield n") == [0, 1, 2]


def test_it_runs_the_source_as_a_module(full: ZygoteRunner) -> None:
    source = """
        import sys
        called = __name__ == "__main__"
        if __name__ == "__main__":
            raise SystemExit
        def tool():
            return [called, sys.modules[__name__].tool is tool, sys.argv]
    """
    assert value_of(full, source) == [False, True, ["tool"]]


def test_it_injects_agent_state_and_agent_id(full: ZygoteRunner) -> None:
    source = """
        def tool(agent_state: "AgentState", agent_id, word: str = "w"):
            memory = agent_state.memory
            memory.update_block_value(label="human", value=memory.get_block("human").value + " new")
            memory.blocks[1].value = "kind"
            return [agent_id, agent_state.name, agent_state["id"], agent_state.tags[0].text, len(memory.blocks), word]
    """
    given = {"agent_state": "forged", "agent_id": "forged"}
    outcome = run(full, source, given, agent_state=STATE, agent_id="agent-1")
    assert outcome.value == ["agent-1", "Ada", "agent-1", "x", 2, "w"]
    assert outcome.block_values == {"human": "old new"}


def test_it_refuses_wrong_memory_edits(full: ZygoteRunner) -> None:
    source = "def tool(agent_state, value):\n    agent_state.memory.update_block_value(label='gone', value=value)"
    assert "KeyError" in run(full, source, {"value": "x"}, agent_state=STATE).error
    assert "ValueError" in run(full, source, {"value": 5}, agent_state=STATE).error


def test_it_has_no_agent_without_one(full: ZygoteRunner) -> None:
    assert value_of(full, "def tool(agent_id, agent_state=1):\n    return [agent_id, agent_state]") == [None, None]


def test_it_injects_by_position_too(full: ZygoteRunner) -> None:
    source = "def tool(a, agent_id, b, /, c):\n    return [a, agent_id, b, c]"
    assert value_of(full, source, {"a": 1, "b": 2, "c": 3}, agent_id="agent-9") == [1, "agent-9", 2, 3]


def test_it_sets_the_environment(full: ZygoteRunner) -> None:
    env = {
        "KEY": "v",
        "LD_PRELOAD": "x",
        "PYTHONPATH": "x",
        "HTTPS_PROXY": "x",
        "no_proxy": "x",
        "A=B": "x",
        "N": "a\0",
    }
    source = "import os\ndef tool():\n    return dict(os.environ)"
    assert value_of(full, source, env=env, agent_id="agent-1", tool_id="tool-1") == {
        "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "KEY": "v",
        "LETTA_AGENT_ID": "agent-1", "LETTA_TOOL_ID": "tool-1",
    }  # fmt: skip


def test_it_leaves_out_variables_that_cannot_be_set() -> None:
    found = environment(make_call("", env={"OK": "1", "BAD": "\ud800", "": "x"}))
    assert "OK" in found
    assert "BAD" not in found
    assert "" not in found


def test_it_offers_a_working_python(full: ZygoteRunner) -> None:
    source = """
        import asyncio, tempfile, threading, sqlite3, zoneinfo, ssl, concurrent.futures, ctypes, hashlib
        async def twice():
            return await asyncio.gather(asyncio.to_thread(len, "ab"), asyncio.sleep(0, 3))
        def tool():
            with tempfile.NamedTemporaryFile("w+") as file:
                file.write("x")
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                total = sum(pool.map(len, ["a", "bc"]))
            database = sqlite3.connect("/tmp/own.db")
            database.execute("create table t (a)")
            zone = str(zoneinfo.ZoneInfo("Europe/Berlin"))
            return [asyncio.run(twice()), total, zone, hashlib.md5(b"").hexdigest()[:4], ssl.HAS_TLSv1_3]
    """
    assert value_of(full, source) == [[2, 3], 3, "Europe/Berlin", "d41d", True]
