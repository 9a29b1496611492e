"""From what a model sends as arguments to the object that a tool runs with, or to an error that it is told."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.arguments import ArgumentsError, canonical, check, digest, parse, strip_internal

CASES = Path(__file__).parent.parent / "cases" / "toolcalls"
REFUSED = ...

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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Missing required argument: path."),
        ({"unknown": 1}, "Missing required argument: path."),
        ({"path": "a", "paht": 1}, "Unknown argument: paht. The tool takes: path, lines,"),
        ({"path": "a", "x": 1, "y": 2}, "Unknown arguments: x, y."),
        ({"path": 1}, "Argument path: must be a string, is a number."),
        ({"path": None}, "Argument path: must be a string, is null."),
        ({"path": "a", "lines": [1, "x"]}, "Argument lines.1: must be an integer, is a string."),
        ({"path": "a", "lines": [True]}, "Argument lines.0: must be an integer, is boolean."),
        ({"path": "a", "mode": "x"}, 'Argument mode: must be one of ["r","w"].'),
        ({"path": "a", "box": {}}, "Argument box: lacks m."),
        ({"path": "a", "maybe": 3}, "Argument maybe: fits none of the forms"),
        ({"path": "a", "tree": {"next": {"v": "x"}}}, "Argument tree.next.v: must be an integer, is a string."),
    ],
)
def test_it_names_the_argument_that_does_not_fit(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        check(arguments, SCHEMA)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ({"type": "integer", "minimum": 3}, 2, "breaks the rule minimum 3 of the tool's schema"),
        ({"type": "string", "maxLength": 2}, "abc", "breaks the rule maxLength 2"),
        ({"type": "array", "uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], "same item twice"),
        ({"type": ["integer", "null"]}, "x", "must be an integer or null, is a string"),
        ({"type": "object", "additionalProperties": False}, {"k": 1}, "breaks the rule additionalProperties"),
        ({"enum": ["y" * 5000]}, "x" * 100_000, "must be one of"),
    ],
)
def test_its_errors_are_short_sentences(part: dict[str, Any], value: Any, said: str) -> None:
    with pytest.raises(ArgumentsError, match=said) as caught:
        check({"a": value}, {"type": "object", "properties": {"a": part}})
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        ({"path": "a"}, SCHEMA),
        ({"path": "a", "lines": [1, 2.0], "maybe": None, "any": [{}], "box": {"m": 1, "more": 2}}, SCHEMA),
        ({"x": 1}, None),
        ({"x": 1}, {}),
        ({"x": 1}, {"type": "object"}),
        ({"x": 1}, {"type": "object", "properties": {}, "additionalProperties": True}),
        ({"x": 1}, {"type": "object", "properties": {}, "patternProperties": {"^x": {}}}),
        ({"x": "a" * 40 + "b"}, {"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}}),
        ({}, {"name": "f", "parameters": {"type": "object", "properties": {}}}),
    ],
)
def test_it_lets_fitting_arguments_pass(arguments: dict[str, Any], schema: dict[str, Any] | None) -> None:
    check(arguments, schema)


def exploding() -> dict[str, Any]:
    parts = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$defs": {**parts, "a40": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a0"}}}


@pytest.mark.parametrize(
    "schema",
    [
        exploding(),
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"properties": {"x": {"$ref": "http://169.254.169.254/latest"}}},
        {"properties": {"x": {"type": "nothing"}}},
        {"properties": {"x": {"minimum": "3"}}},
        {"properties": {"x": {"anyOf": 5}}},
        {"properties": {"x": {"multipleOf": 0}}},
        {"required": 5},
    ],
)
def test_it_survives_a_schema_that_is_broken_or_means_harm(schema: dict[str, Any]) -> None:
    begun = time.monotonic()
    with pytest.raises(ArgumentsError):
        check({"x": 1}, schema)
    assert time.monotonic() - begun < 15


def test_it_survives_numbers_that_no_double_holds() -> None:
    with pytest.raises(ArgumentsError):
        check({"x": 10**400}, {"properties": {"x": {"multipleOf": 1e-300}}})


def test_it_compares_many_items_in_one_go() -> None:
    begun = time.monotonic()
    check({"x": [{"n": n} for n in range(30_000)]}, {"properties": {"x": {"uniqueItems": True}}})
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "ü\n"]}, '{"a":[true,null,"ü\\n"],"b":1}'),
        ({"ä": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"ä":1}'),
        (1e22, "10000000000000000000000"),
        (1e-7, "0.0000001"),
        (-0.0, "0.0"),
        (1000.0, "1000.0"),
        (0.1, "0.1"),
        (2**64 + 1, "18446744073709551617"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_it_writes_canonical_json(value: Any, text: str) -> None:
    assert canonical(value) == text


def test_its_digest_is_the_hash_of_the_canonical_text() -> None:
    assert digest({"b": 1, "a": 2}) == "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
    assert digest({"a": 2, "b": 1}) == digest({"b": 1, "a": 2})
    assert digest({"a": 2}) != digest({"a": "2"})
    assert len(digest({"unread": "\ud800"})) == 64


def test_it_refuses_to_freeze_what_json_does_not_know() -> None:
    with pytest.raises(ValueError, match="NaN"):
        canonical({"a": math.nan})
    with pytest.raises(TypeError):
        canonical({"a": b"x"})


def plain_text() -> st.SearchStrategy[str]:
    return st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain_text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text(), inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(plain_text(), VALUES, max_size=5)


@given(OBJECTS)
def test_it_reads_any_object_as_it_is(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value), schema=None) == value
    assert parse(json.dumps(value, ensure_ascii=False, indent=1), schema=None) == value
    assert parse(json.dumps(json.dumps(value)), schema=None) == value
    assert parse(value, schema=None) == value


@given(OBJECTS)
def test_its_canonical_text_is_stable(value: dict[str, Any]) -> None:
    text = canonical(value)
    assert canonical(json.loads(text)) == text
    assert canonical(parse(text, schema=None)) == text
    assert canonical(dict(reversed(value.items()))) == text


@given(OBJECTS)
def test_it_reads_an_object_in_a_fence_with_trailing_commas(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1)
    if value:
        text = text[: text.rindex("\n")] + ",\n}"
    assert parse(f"```json\n{text}\n```", schema=None) == value


@given(st.text(alphabet=st.sampled_from('{}[]",:\\ \n1ae.-`tru\0\ud800'), max_size=30))
def test_it_gives_an_object_or_an_error_for_any_text(text: str) -> None:
    try:
        read = parse(text, schema=None)
    except ArgumentsError:
        return
    assert isinstance(read, dict)
    assert not read or "{" in text
    canonical(read).encode("utf-8")
