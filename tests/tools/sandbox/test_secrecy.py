"""Secrets of the server are nowhere in a tool's reach; secrets of a tool are blacked out in what comes back."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.tools.sandbox.calls import run
from tests.tools.sandbox.conftest import marked
from tools.sandbox import frame
from tools.sandbox.redaction import MARK, redact_value, redactor
from tools.sandbox.runners import ZygoteRunner

SECRET = 'pa"ss wörd/1'
SPELLINGS = [
    SECRET,
    json.dumps(SECRET),
    json.dumps(SECRET, ensure_ascii=False),
    repr(SECRET),
    "https://x/?k=pa%22ss+w%C3%B6rd%2F1",
    f"before{SECRET}after",
]

LOOK_EVERYWHERE = r"""
import ctypes, os, re
def tool():
    pattern = re.compile(rb"SERVER[-]MARK[-][0-9a-f]{16}")
    found, seen = [], 0
    tops = ("/", "/etc", "/dev", "/proc", "/proc/self", "/tmp", "/usr/share", "/usr/local", "/run", "/var", "/home")
    places = [place for top in tops for place in os.walk(top)]
    for folder, names in [*((place[0], place[2]) for place in places), ("/etc", ["passwd", "hosts"])]:
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    found += pattern.findall(file.read(1 << 20))
                    seen += 1
            except OSError:
                pass
    with open("/proc/self/maps") as file:
        for line in file:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("r") and "[v" not in line:
                data = ctypes.string_at(start, end - start)
                found += pattern.findall(data)
                del data
    return [sorted({item.decode() for item in found}), seen > 3]
"""


def test_it_hides_the_servers_secrets(full: ZygoteRunner) -> None:
    with marked():
        outcome = run(full, LOOK_EVERYWHERE, timeout=30)
    assert (outcome.value, outcome.error) == ([[], True], "")


@pytest.mark.parametrize("text", SPELLINGS)
def test_it_blacks_out_every_spelling(text: str) -> None:
    redacted = redactor([SECRET])(text)
    assert MARK in redacted
    assert "ss w" not in redacted
    assert "%22ss" not in redacted


def test_it_leaves_short_and_blank_values_alone() -> None:
    assert redactor(["1", "on", "   ", ""])("1 on   2") == "1 on   2"


def test_it_prefers_the_longest_secret() -> None:
    assert redactor(["token", "token-long"])("token-long token") == f"{MARK} {MARK}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"key-4711": ["4711", 4711, 47110, 5, True, None]}, {f"key-{MARK}": [MARK, MARK, MARK, 5, True, None]}),
        ([{"a": "x4711y"}], [{"a": f"x{MARK}y"}]),
        (4711.5, MARK),
    ],
)
def test_it_redacts_whole_values(value: Any, expected: Any) -> None:
    assert redact_value(value, redactor(["4711"])) == expected


def test_it_redacts_everything_that_comes_back(full: ZygoteRunner) -> None:
    source = """
        import os, sys
        def tool(agent_state, fail):
            secret = os.environ["TOKEN"]
            print(secret, "s3cr\\x00et-tok\\x1b[0men")
            print(repr(secret), file=sys.stderr)
            agent_state.memory.update_block_value(label="human", value=f"it is {secret}")
            if fail:
                raise ValueError(secret)
            return {secret: [secret]}
    """
    state = {"memory": {"blocks": [{"label": "human", "value": ""}]}}
    rest: dict[str, Any] = {"env": {"TOKEN": "s3cret-token"}, "secrets": ("s3cret-token",), "agent_state": state}
    for fail in (False, True):
        outcome = run(full, source, {"fail": fail}, **rest)
        assert "s3cret" not in f"{outcome}"
        assert outcome.stdout == f"{MARK} {MARK}\n"
    assert run(full, source, {"fail": False}, **rest).value == {MARK: [MARK]}


def test_it_redacts_at_the_cut(full: ZygoteRunner) -> None:
    source = """
        def tool():
            print("x" * (65536 - 6) + "s3cret-token" + "y" * 1000)
            raise ValueError("x" * 1000 + "s3cret-token")
    """
    outcome = run(full, source, secrets=("s3cret-token",))
    assert "s3c" not in outcome.stdout + outcome.error
    assert outcome.stdout.endswith("... [cut at 65536 bytes]")
    assert len(outcome.error) == 1000


def test_it_cuts_at_whole_characters() -> None:
    assert frame.cut("é" * 10, 5) == "éé\n... [cut at 5 bytes]"
    assert frame.cut("é" * 10, 20) == "é" * 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b\x07\x08", "ab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x9b31mred", "red"),
        ("one\r\ntwo\rthree\tfour", "one\ntwo\nthree\tfour"),
        ("\ud83d", "\ufffd"),
        ("🎉é", "🎉é"),
    ],
)
def test_it_cleans_text(text: str, expected: str) -> None:
    assert frame.clean_text(text) == expected


def test_it_refuses_values_that_are_nested_too_deeply() -> None:
    value: list[Any] = []
    for _ in range(sys.getrecursionlimit() // 2):
        value = [value]
    with pytest.raises(frame.BadFrame):
        frame.clean_value(value)
