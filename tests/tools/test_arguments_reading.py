"""From what a model sends as arguments to the object that a tool runs with, or to an error."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from tools.arguments import ArgumentsError, canonical, check, digest, parse, strip_internal

CASES = Path(__file__).parent.parent / "cases" / "toolcalls"


# case: what it means, or REFUSED and a part of the error
MEANT: dict[str, Any] = {
    "ok_01_empty.txt": {},
    "ok_02_blank.txt": {},
    "ok_03_null.txt": {},
    "ok_05_huge_ints.txt": {
        "id": 9007199254740993,
        "big": 123456789012345678901234567890,
        "neg": 0,
        "f": 1000.0,
        "g": 1.0,
    },
    "ok_09_double_encoded.txt": {"city": "Ulm"},
    "ok_11_extra_internal.txt": {
        "city": "Ulm",
        "request_heartbeat": True,
        "thinking": "hmm",
        "inner_thoughts": "x",
    },
    "ok_12_bom.txt": {"city": "Ulm"},
    "bad_01_trailing_comma.txt": {"path": "a.txt", "mode": "w"},
    "bad_05_code_fence.txt": {"path": "a.txt"},
    "bad_11_nul.txt": {"t": "ab"},
    "bad_12_invalid_utf8.bin": {"t": "caf\ufffd \ufffd"},
    "bad_02_single_quotes.txt": "Expecting property name",
    "bad_03_unquoted_keys.txt": "Expecting property name",
    "bad_06_two_objects.txt": "Extra data",
    "bad_08_python_literals.txt": "Expecting value",
    "bad_09_comment.txt": "Expecting ',' delimiter",
    "bad_14_closing_missing.txt": "Expecting ',' delimiter",
}


OTHERS = {"ok_06_deep_nesting.txt", "ok_08_already_object.json"}


def levels(number: int) -> str:
    return '{"a":' * number + "1" + "}" * number


@pytest.mark.parametrize("case", MEANT)
def test_it_reads_a_case(case: str) -> None:
    wanted = MEANT[case]
    data = (CASES / case).read_bytes()
    given_forms: list[str | bytes] = [data] if case.endswith(".bin") else [data, data.decode()]
    for sent in given_forms:
        if isinstance(wanted, dict):
            read = parse(sent, schema=None)
            assert read == wanted
            assert canonical(read) == canonical(wanted)
        else:
            with pytest.raises(ArgumentsError, match=wanted):
                parse(sent, schema=None)


def test_every_case_is_in_a_table() -> None:
    assert {path.name for path in CASES.iterdir()} == MEANT.keys() | OTHERS


def test_it_takes_two_hundred_levels_and_keeps_them() -> None:
    text = (CASES / "ok_06_deep_nesting.txt").read_text()
    read = parse(text, schema={"type": "object", "properties": {"a": {"type": "object"}}})
    assert json.dumps(read, separators=(",", ":")) == text.strip()
    check(read, {"type": "object", "properties": {"a": {"type": "object"}}})
    assert len(digest(read)) == 64


@pytest.mark.parametrize(
    "text", [levels(257), levels(100_000), "[" * 100_000, '{"a":' * 100_000, json.dumps(levels(300))]
)
def test_it_refuses_what_is_nested_too_deeply(text: str) -> None:
    with pytest.raises(ArgumentsError, match="nested"):
        parse(text, schema=None)


def test_it_takes_an_object_that_was_parsed_already() -> None:
    call = json.loads((CASES / "ok_08_already_object.json").read_text())
    given_object = call["function"]["arguments"]
    read = parse(given_object, schema=None)
    assert read == {"city": "Ulm", "n": [1, 2]}
    assert read is not given_object
    assert parse(None, schema=None) == {}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("[1,2]", "a list"),
        ('"x"', "not valid JSON"),
        ('""', "a text"),
        ('"null"', "a text"),
        ('"[1]"', "a text"),
        (json.dumps(json.dumps("{}")), "a text"),
        ("5", "a number"),
        ("1.5", "a number"),
        ("true", "true or false"),
        (5, "a number"),
        ([1], "a list"),
        (True, "true or false"),
        (object(), "object"),
    ],
)
def test_it_refuses_what_is_no_object(sent: object, said: str) -> None:
    with pytest.raises(ArgumentsError, match=said):
        parse(sent, schema=None)


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": {"b": 1,\n},\n}', {"a": {"b": 1}}),
        ('{"a": "x,}", "b": "\\",]",}', {"a": "x,}", "b": '",]'}),
        ('{"a": true,}', {"a": True}),
        ('{"a": [[],],}', {"a": [[]]}),
        ("```\n{}\n```", {}),
        ('```JSON\r\n{"a": "```"}\r\n```', {"a": "```"}),
        ('```json\n{"a": 1,}\n```\n', {"a": 1}),
        ("```json\n\n```", {}),
        (' \n\t{"a": 1}\n', {"a": 1}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ('{"a": "x\0y"}', {"a": "xy"}),
        ('{"a\\u0000": 1}', {"a": 1}),
    ],
)
def test_it_repairs_what_leaves_no_doubt(sent: str, wanted: dict[str, Any]) -> None:
    assert parse(sent, schema=None) == wanted


@pytest.mark.parametrize(
    "sent",
    [
        "{,}",
        '{"a": [,]}',
        '{"a": 1,,}',
        '{"a":,}',
        '{"a": 1',
        '{"a": "x',
        '{"a": "x\ny"}',
        '{"a": 1}}',
        '{"a": 1} trailing words',
        'Here it is: {"a": 1}',
        '```json\n{"a": 1}\n``` and more',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": .5}',
        '{"a": 01}',
        '{"a": ' + "1" * 4301 + "}",
        '{"a": 1, "a": 2}',
        '{"b": {"a": 1, "a": 1}}',
        '{"a": 1, "a\\u0000": 2}',
        "\\",
        "null null",
        " " * 10 + "{",
        "x" * 1_000_001,
    ],
)
def test_it_refuses_what_is_uncertain_and_never_takes_it_for_nothing(sent: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse(sent, schema=None)
    assert 0 < len(str(caught.value)) <= 500


@pytest.mark.parametrize("sent", [{"a": math.nan}, {"a": [math.inf]}, {"a": {1}}, {1: 2}, {"a": 1, "a\0": 2}])
def test_it_refuses_objects_that_json_cannot_carry(sent: object) -> None:
    with pytest.raises(ArgumentsError, match="cannot be used"):
        parse(sent, schema=None)


def test_it_keeps_an_integer_of_many_digits() -> None:
    digits = "9" * 4300
    assert canonical(parse(f'{{"a": {digits}}}', schema=None)) == f'{{"a":{digits}}}'


@pytest.mark.parametrize(
    "sent",
    [
        '"' + 'a\\"' * 300_000,
        '{"a": "' + '\\"' * 400_000,
        '"' * 900_000,
        "{" * 200 + '"a\\' * 200_000,
        "[" + "," * 900_000,
        "`" * 900_000,
        "```\n" + "`" * 900_000 + " x",
    ],
)
def test_its_time_grows_with_the_length_only(sent: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ArgumentsError):
        parse(sent, schema=None)
    assert time.monotonic() - begun < 15


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "any": {},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "mode": {"type": "string", "enum": ["r", "w"]},
        "box": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}},
            "required": ["m"],
        },
        "tree": {"$ref": "#/$defs/Tree"},
    },
    "required": ["path"],
    "$defs": {"Tree": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/Tree"}}}},
}


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({"path": "a", "lines": None}, {"path": "a"}),
        ({"path": None}, {"path": None}),
        ({"path": "a", "any": None, "maybe": None}, {"path": "a", "any": None, "maybe": None}),
        ({"path": "a", "mode": None, "unknown": None}, {"path": "a", "unknown": None}),
        ({"path": "a", "box": {"n": None, "m": None}}, {"path": "a", "box": {"m": None}}),
        (
            {"path": "a", "tree": {"v": None, "next": {"v": 1, "next": {}}}},
            {"path": "a", "tree": {"next": {"v": 1, "next": {}}}},
        ),
    ],
)
def test_it_reads_a_null_for_an_optional_argument_as_absence(sent: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert parse(sent, schema=SCHEMA) == wanted
    assert parse(sent, schema={"name": "f", "description": "", "parameters": SCHEMA}) == wanted
    assert parse(sent, schema=None) == sent


@pytest.mark.parametrize(
    ("given_value", "heartbeat"),
    [(True, True), (False, False), ("true", True), (" False ", False), ("yes", None), (1, None), (None, None)],
)
def test_it_takes_the_heartbeat_out(given_value: object, heartbeat: bool | None) -> None:
    sent = {"path": "a", "request_heartbeat": given_value, "inner_thoughts": "x", "thinking": "y"}
    assert strip_internal(sent, SCHEMA) == ({"path": "a"}, heartbeat)
    assert "thinking" in sent


def test_it_leaves_internal_names_that_the_tool_declares() -> None:
    schema = {"type": "object", "properties": {"thinking": {}, "request_heartbeat": {"type": "boolean"}}}
    sent = {"thinking": "t", "request_heartbeat": True, "inner_thoughts": "x"}
    assert strip_internal(sent, schema) == ({"thinking": "t", "request_heartbeat": True}, None)
    assert strip_internal(sent, None) == ({}, True)
