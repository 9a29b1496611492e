"""Arguments reach a tool as what its annotations say, or the one that does not fit is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.sandbox.calls import run, value_of
from tools.sandbox.runners import ZygoteRunner
from tools.schema import decode_source

CASES = Path(__file__).resolve().parents[2] / "cases" / "tools"

PYDANTIC: dict[str, tuple[str, dict[str, Any], Any]] = {
    "t08_nested_pydantic.py": (
        "ship",
        {"box": {"label": "a", "parts": [{"code": "x"}]}, "others": [{"label": "b"}]},
        "a:1:['b']",
    ),
    "t09_optional_object_field.py": (
        "answer",
        {"data": {"words": ["a"], "blob": {"b": [1]}}},
        '{"words":["a"],"hint":null,"blob":{"b":[1]},"more":null}',
    ),
    "t12_future_annotations.py": ("pay", {"wallet": {"owner": "Ada"}, "amount": 5}, "Ada 5 eur None"),
    "t35_recursive_model.py": ("walk", {"root": {"name": "a", "children": [{"name": "b"}, {"name": "c"}]}}, 3),
}
SOURCES: list[tuple[str, str, dict[str, Any], Any]] = [
    ("t01_google.py", "plan_route", {"start": "A", "stops": "3"}, "A/3/False"),
    ("t05_constant_default.py", "list_events", {}, "None main 25 /"),
    ("t07_pep604_generics.py", "mix", {"a": None, "b": ["1"], "c": {"x": 1}, "d": [1, "z"], "f": ["q"]},
     ["None", "[1]", "{'x': 1.0}", "(1, 'z')", "()", "{'q'}"]),
    ("t11_kwonly_posonly.py", "cut", {"text": "abcdef", "start": 1, "end": 4}, "bcd"),
    ("t13_dataclass_param.py", "move", {"target": {"x": 1, "names": ["n"]}, "note": "hi", "meta": {"who": "me"}},
     "Spot(x=1, y=0, names=['n']) hi {'who': 'me'}"),
    ("t14_async_def.py", "wait_and_say", {"word": "hello", "seconds": 0.01}, "hello"),
    ("t16_no_docstring.py", "add", {"a": 1, "b": 2}, 3),
    ("t17_two_functions.py", "main_tool", {"x": 2}, 5),
    ("t18_nested_function.py", "outer", {"n": 4}, 14),
    ("t19_class_then_function.py", "open_shop", {"city": "Ulm", "hour": 9}, "Ulm 9"),
    ("t20_decorators.py", "shout", {"word": "hi"}, "HI!"),
    ("t23_odd_defaults.py", "odd", {"a": [1], "f": "y"},
     "([1], {'k': [1, (2,)]}, inf, -1, 'line\\n\"q\" ☃', b'y', 1000.5, False)"),
    ("t26_reserved_names.py", "tricky",
     {"name": "n", "arguments": "a", "request_heartbeat": True, "id": "i", "type": "t"}, "naTrueit"),
    ("t06_union_literal_enum.py", "paint", {"colour": "red", "coats": 2, "extra": 1.5},
     "Colour.RED 2 dry 3 None 1.5"),
    ("t32_generator.py", "count", {"n": 3}, [0, 1, 2]),
    ("t38_latin1_cookie.py", "gruss", {}, "Grüß Jürgen"),
]  # fmt: skip


ARGUMENTS: list[tuple[str, Any, str]] = [
    ("int", "5", "5 int"),
    ("int", 5.0, "5 int"),
    ("float", 5, "5.0 float"),
    ("bool", "false", "False bool"),
    ("str", 5, "5 str"),
    ("int | None", None, "None NoneType"),
    ("Optional[int]", "7", "7 int"),
    ("Union[int, str]", "7", "7 str"),
    ("Literal[1, 2]", "2", "2 int"),
    ("Colour", "red", "Colour.RED Colour"),
    ("Colour", "RED", "Colour.RED Colour"),
    ("list[int]", ["1"], "[1] list"),
    ("set[int]", [1, 1], "{1} set"),
    ("tuple[int, str]", ["1", 2], "(1, '2') tuple"),
    ("dict[str, Colour]", {"a": "red"}, "{'a': <Colour.RED: 'red'>} dict"),
    ("datetime.date", "2026-11-30", "2026-11-30 date"),
    ("datetime.datetime", "2026-11-30T10:00:00Z", "2026-11-30 10:00:00+00:00 datetime"),
    ("decimal.Decimal", 1.1, "1.1 Decimal"),
    ("Annotated[int, 'x']", "3", "3 int"),
    ("Number", "3", "3 int"),
    ("Missing", "3", "3 str"),
    ("Any", [1], "[1] list"),
    ("Pair", {"a": 1, "b": "2"}, "Pair(a=1, b=2) Pair"),
]


@pytest.mark.parametrize(("annotation", "given", "expected"), ARGUMENTS)
def test_it_gives_arguments_their_types(annotation: str, given: Any, expected: str, full: ZygoteRunner) -> None:
    source = f"""
from __future__ import annotations
import datetime, decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Union
Number = NewType("Number", int)
class Colour(Enum):
    RED = "red"
class Pair(NamedTuple):
    a: int
    b: int
def tool(value: {annotation}):
    return f"{{value}} {{type(value).__name__}}"
"""
    assert value_of(full, source, {"value": given}) == expected


@pytest.mark.parametrize(
    ("annotation", "given", "text"),
    [
        ("int", "many", "argument value: invalid literal for int()"),
        ("int", 1.5, "argument value: 1.5 is no integer"),
        ("bool", "perhaps", "argument value: 'perhaps' is no boolean"),
        ("Literal['a', 'b']", "c", "argument value: 'c' is none of 'a', 'b'"),
        ("tuple[int, int]", [1], "argument value: 1 items instead of 2"),
    ],
)
def test_it_names_the_argument_that_does_not_fit(annotation: str, given: Any, text: str, full: ZygoteRunner) -> None:
    source = f"from typing import Literal\ndef tool(value: {annotation}):\n    return value"
    assert run(full, source, {"value": given}).error.startswith(
        f"Error executing function tool: ArgumentMismatch: {text}"
    )


@pytest.mark.parametrize(("file", "function", "arguments", "expected"), SOURCES, ids=[case[0] for case in SOURCES])
def test_it_runs_sources_from_the_field(
    file: str, function: str, arguments: dict[str, Any], expected: Any, full: ZygoteRunner
) -> None:
    outcome = run(full, decode_source((CASES / file).read_bytes()), arguments, function=function)
    assert (outcome.value, outcome.error, outcome.stdout) == (expected, "", "")


@pytest.mark.parametrize(
    ("file", "function", "arguments", "text"),
    [
        ("t06_union_literal_enum.py", "paint", {"colour": "pink", "coats": 2}, "argument colour"),
        ("t33_missing_import.py", "use_it", {"a": "x"}, "ModuleNotFoundError: No module named 'not_installed"),
    ],
)
def test_it_tells_what_a_source_from_the_field_cannot_do(
    file: str, function: str, arguments: dict[str, Any], text: str, full: ZygoteRunner
) -> None:
    assert text in run(full, decode_source((CASES / file).read_bytes()), arguments, function=function).error


@pytest.mark.parametrize("file", PYDANTIC)
def test_it_builds_pydantic_models(file: str, full: ZygoteRunner) -> None:
    pytest.importorskip("pydantic")
    function, arguments, expected = PYDANTIC[file]
    assert value_of(full, (CASES / file).read_text(encoding="utf-8"), arguments, function=function) == expected
