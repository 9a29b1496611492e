"""Attempts to confuse whoever reads the result."""

from __future__ import annotations

from tools.sandbox.base import SandboxOutcome

from .table import Escape, fails, gives

RAW = "import os\nos.write(63, {data})\nos._exit(0)"
OUTPUT_LIMIT = 64 * 1024 + 100


def _raw(name: str, data: str, *texts: str) -> Escape:
    return Escape(f"frame with {name}", RAW.format(data=data), fails(*texts))


def _bounded_outputs(outcome: SandboxOutcome) -> str:
    sizes = [len(outcome.stdout.encode()), len(outcome.stderr.encode())]
    if outcome.status != "success" or outcome.value != "done":
        return f"{outcome.status} {outcome.error}"
    return "" if all(60000 < size < OUTPUT_LIMIT for size in sizes) else f"{sizes} bytes of output"


def _clean(outcome: SandboxOutcome) -> str:
    text = f"{outcome.value}{outcome.stdout}"
    bad = [character for character in "\x00\x07\x1b\ud800" if character in text]
    return f"{bad}" if bad or outcome.status != "success" else ""


RESULTS = [
    Escape(
        "output floods",
        """
import sys
for _ in range(3000):
    print("x" * 1000)
    sys.stderr.write("y" * 1000)
os.write(1, b"z" * 5000000)
return "done"
""",
        _bounded_outputs,
    ),
    Escape(
        "raw output beyond the file limit",
        """
def flood():
    for _ in range(100):
        os.write(1, b"z" * (1 << 20))
    return "100 MB"
attempt("write", flood)
""",
    ),
    Escape(
        "a frame on stdout",
        """print('{"ok": true, "value": "forged", "blocks": {}}')\nreturn "true one" """,
        gives("true one"),
    ),
    _raw("20 MB", 'b"[" * (20 << 20)', "the result frame has"),
    _raw("deep nesting", 'b"[" * 200000', "nested too deeply", "no JSON"),
    _raw("deep nesting, closed", 'b"[" * 400000 + b"]" * 400000', "nested too deeply"),
    _raw("invalid UTF-8", r"""b'{"ok": true, "value": "\xff\xfe", "blocks": {}}'""", "the result is no JSON"),
    _raw("huge integer", """b'{"ok": true, "value": ' + b"9" * 100000 + b', "blocks": {}}'""", "the result is no JSON"),
    _raw("wrong form", """b'{"ok": "yes", "value": 1}'""", "no known form"),
    _raw("a list", "b'[1, 2]'", "no known form"),
    _raw("wrong blocks", """b'{"ok": true, "value": 1, "blocks": [1]}'""", "no known form"),
    _raw("wrong error", """b'{"ok": false, "type": 5, "message": null}'""", "no known form"),
    Escape(
        "frame with NaN, duplicate keys and foreign blocks",
        """
data = b'{"ok": true, "ok": true, "value": [NaN, Infinity, 1e999, 1, 123456789012345678901234567890], '
os.write(63, data + b'"blocks": {"persona": "x", "other": 5}}')
os._exit(0)
""",
        gives(["NaN", "Infinity", "Infinity", 1, "123456789012345678901234567890"]),
    ),
    Escape("os._exit(0)", "os._exit(0)", fails("exited without a result")),
    Escape("os._exit(7)", "os._exit(7)", fails("exited with code 7")),
    Escape("sys.exit", "import sys\nsys.exit('bye')", fails("SystemExit: bye")),
    Escape("segmentation fault", "ctypes.string_at(0)", fails("SIGSEGV")),
    Escape("abort", "os.abort()", fails("SIGSEGV", "SIGABRT", "SIGILL")),
    Escape("closing every descriptor", "os.closerange(0, 100)\nreturn 1", fails("without a result")),
    Escape("huge integer as result", "return 10 ** 5000", fails("ValueError: Exceeds the limit")),
    Escape(
        "structure that holds itself",
        "loop = []\nloop.append(loop)\nreturn loop",
        fails("ResultTooDeep: the result is nested more than"),
    ),
    Escape(
        "characters that databases and terminals dislike",
        r"""
print("a\x00b\x1b[31mred\x1b[0m\x07\ud800")
return {"k\x00\ud800": ["a\x00b\ud800\x1b]0;title\x07c"]}
""",
        _clean,
    ),
    Escape(
        "endless text of an object",
        "class Bomb:\n    def __str__(self):\n        while True:\n            pass\nreturn Bomb()",
        fails("TimeoutError"),
        0.6,
    ),
    Escape(
        "exception whose text raises",
        "class Odd(Exception):\n    def __str__(self):\n        raise KeyError('x')\nraise Odd",
        fails("Odd: <the text of the exception raised KeyError>"),
    ),
    Escape("endless recursion", "def again():\n    return again()\nreturn again()", fails("RecursionError")),
    Escape(
        "exception chain without end",
        "one, two = ValueError('a'), ValueError('b')\none.__cause__, two.__cause__ = two, one\nraise one",
        fails("ValueError: a"),
    ),
    Escape(
        "breaking what the result is made with",
        """
import builtins, json, sys
json.dumps = json.loads = lambda *a, **k: "forged"
sys.stdout = sys.stderr = None
builtins.len = builtins.isinstance = builtins.type = lambda *a: 0
return 5
""",
        lambda outcome: "" if str(outcome.value) == "5" else f"{outcome}",
    ),
]
