"""JSON in: strict. JSON out: valid for every parser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lettaweb.lib.json import MAX_DEPTH, BadJson, dumps, loads

BAD = {
    "nan": b'{"x": NaN}',
    "infinity": b"[Infinity]",
    "minus infinity": b"[-Infinity]",
    "float out of range": b"[1e999]",
    "integer out of range": b"[1" + b"0" * 400 + b"]",
    "negative integer out of range": b"[-1" + b"0" * 5000 + b"]",
    "too deep": b"[" * 5000 + b"]" * 5000,
    "a little too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "deep objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "unclosed": b"[" * 100_000,
    "duplicate key": b'{"a": 1, "b": {"c": 1, "c": 1}}',
    "invalid utf-8": b'{"a": "\xff"}',
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "raw control character": b'{"a": "\x00"}',
    "two values": b"{} {}",
    "single quotes": b"{'a': 1}",
    "empty": b"",
    "blank": b"  ",
    "bare word": b"hello",
    "trailing comma": b"[1,]",
}
GOOD: dict[str, tuple[bytes, Any]] = {
    "object": (b'{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
    "byte order mark": (b"\xef\xbb\xbf[1]", [1]),
    "large integer is exact": (b"[123456789012345678901234567890]", [123456789012345678901234567890]),
    "deepest": (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
    "nul is dropped": (b'{"a\\u0000b": "x\\u0000y"}', {"ab": "xy"}),
    "lone surrogate": (b'["a\\ud83db", "\\udc00"]', ["a\ufffdb", "\ufffd"]),
    "surrogate pair": (b'["\\ud83d\\ude00"]', ["\U0001f600"]),
    "escaped backslash before u": (rb'["\\u0000"]', ["\\u0000"]),
    "wide but flat": (b"[" + b",".join([b"[]"] * 500) + b"]", [[]] * 500),
    "small float": (b"[1e-999]", [0.0]),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_it_refuses_what_is_not_plain_json(data: bytes) -> None:
    with pytest.raises(BadJson) as caught:
        loads(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("data", "value"), GOOD.values(), ids=GOOD)
def test_it_reads_plain_json(data: bytes, value: Any) -> None:
    found = loads(data)
    if value is not None:
        assert found == value
    assert json.loads(dumps(found).encode()) == found


OUT = {
    "nan": ({"a": float("nan")}, '{"a":null}'),
    "infinity in a tuple": ((float("inf"), 1.5), "[null,1.5]"),
    "infinite key": ({float("inf"): 1}, '{"inf":1}'),
    "line separators": ("a\u2028b\u2029c\x85d", '"a\\u2028b\\u2029c\\u0085d"'),
    "lone surrogate": ("a\ud800b", '"a\ufffdb"'),
    "lone surrogate beside nan": (["a\ud800b\u2028", float("nan")], '["a\ufffdb\\u2028",null]'),
    "umlaut stays": ({"ü": "ß"}, '{"ü":"ß"}'),
    "quotes": ('say "hi"\n', '"say \\"hi\\"\\n"'),
}


@pytest.mark.parametrize(("value", "text"), OUT.values(), ids=OUT)
def test_it_writes_what_every_parser_reads(value: Any, text: str) -> None:
    written = dumps(value)
    assert written == text
    assert len(written.splitlines()) == 1
    json.loads(written.encode("utf-8"), parse_constant=lambda name: pytest.fail(name))


def test_it_does_not_hide_a_type_that_json_has_not() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})
