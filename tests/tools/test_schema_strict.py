"""Schemas rewritten for strict function calling."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tools.arguments import check, parse
from tools.schema import derive, strict

Json = dict[str, Any]


def deep(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


STRICT_SOURCE = '''
from typing import *
from pydantic import BaseModel, Field

class Inner(BaseModel):
    size: int = Field(3, ge=1, description="Size")
    tag: Optional[str] = None

def tool(a: int, inner: Inner, rows: List[Inner] = [], mode: Literal["x"] = "x", late: Inner = None,
         u: Union[int, str] = 1):
    """T.

    Args:
        a: A.
        inner: I.
        rows: R.
        mode: M.
        late: L.
        u: U.
    """
'''


def test_it_rewrites_a_schema_for_strict_calls() -> None:
    made = strict(derive(STRICT_SOURCE).json_schema["parameters"])
    inner = {
        "type": "object",
        "properties": {
            "size": {"type": ["integer", "null"], "description": "Size"},
            "tag": {"type": ["string", "null"]},
        },
        "required": ["size", "tag"],
        "additionalProperties": False,
    }
    assert made == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "A."},
            "inner": {**inner, "description": "I."},
            "rows": {"anyOf": [{"type": "array", "items": inner}, {"type": "null"}], "description": "R."},
            "mode": {"type": ["string", "null"], "enum": ["x", None], "description": "M."},
            "late": {"anyOf": [inner, {"type": "null"}], "description": "L."},
            "u": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "description": "U."},
        },
        "required": ["a", "inner", "rows", "mode", "late", "u"],
        "additionalProperties": False,
    }


def test_what_a_strict_model_sends_fits_the_tool() -> None:
    parameters = derive(STRICT_SOURCE).json_schema["parameters"]
    sent = {
        "a": 1,
        "inner": {"size": None, "tag": None},
        "rows": [{"size": 2, "tag": None}],
        "mode": None,
        "late": {"size": None, "tag": "x"},
        "u": None,
    }
    jsonschema.validate(sent, strict(parameters) or {})
    arguments = parse(sent, schema=parameters)
    assert arguments == {"a": 1, "inner": {}, "rows": [{"size": 2}], "late": {"tag": "x"}}
    check(arguments, parameters)


def parameters(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_it_does_not_change_the_schema_that_it_rewrites() -> None:
    given = parameters(a={"type": "object", "properties": {"b": {"type": "array", "items": {"type": "string"}}}})
    before = repr(given)
    strict(given)
    assert repr(given) == before


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ({"type": "string", "format": "uuid", "pattern": "x", "default": 1}, {"type": "string", "format": "uuid"}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"enum": ["a", 1]}, {"type": ["string", "integer"], "enum": ["a", 1]}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"allOf": [{"type": "string"}], "description": "D"}, {"type": "string", "description": "D"}),
        ({"$ref": "#/$defs/A", "description": "D"}, {"type": "integer", "description": "D"}),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "array", "items": {"type": "string"}},
        ),
    ],
)
def test_it_rewrites_a_part(part: Json, wanted: Json) -> None:
    made = strict({**parameters(a=part), "$defs": {"A": {"type": "integer"}}})
    assert made is not None
    assert made["properties"]["a"] == wanted


@pytest.mark.parametrize(
    "part",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"not": {"type": "string"}},
        {"allOf": [{"type": "string"}, {"type": "string"}]},
        {"enum": [{"a": 1}]},
        {"enum": []},
        {"enum": list(range(1000))},
        {"type": "text"},
        {"$ref": "#/properties/a"},
        {"$ref": "http://x/y"},
        {"type": "array", "items": {"$ref": "#/properties/a"}},
        deep(12),
    ],
)
def test_it_leaves_a_tool_loose_where_no_strict_form_is(part: Any) -> None:
    assert strict(parameters(a=part)) is None


def test_it_takes_a_tool_without_parameters() -> None:
    assert strict({"type": "object", "properties": {}}) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
