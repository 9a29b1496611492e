"""Arguments against the schema of a tool."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tools.arguments import ArgumentsError, check

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
