"""Schemas that a request brings: checked, and made from a pydantic model's."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from tools.schema import SchemaError, check_json_schema, check_tool_name, derive

Json = dict[str, Any]


def function(name: Any = "tool", **parameters: Any) -> Json:
    return {"name": name, "description": "T.", "parameters": {"type": "object", **parameters}}


def deep(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        function(),
        function(properties={"a": {"type": "string"}}, required=["a"]),
        function(properties={"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": "integer"}}}),
        function(
            properties={"a": {"$ref": "#/definitions/A"}}, definitions={"A": {"items": {"$ref": "#/definitions/A"}}}
        ),
        function(properties={"a": {"oneOf": [{"type": "string"}, {"const": 3}]}, "b": {}, "c": True}),
        function(properties={"$ref": {"type": "string"}, "type": {"enum": [1]}} | {"x.y-z": {}})
        | {"parameters": {"type": "object", "properties": {"type": {"enum": [1]}, "x.y-z": {}}}},
        function("a" * 64),
        function(**{"$schema": "http://json-schema.org/draft-07/schema#"}),
        {"name": "tool", "parameters": {"type": "object"}},
    ],
)
def test_it_takes_a_sound_schema(schema: Json) -> None:
    check_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({}, "name of the tool is missing"),
        (function(None), "name of the tool is missing"),
        (function(3), "name of the tool is missing"),
        (function("a.b"), "Tool name 'a.b' is not valid"),
        (function("x y"), "Tool name 'x y' is not valid"),
        (function("näm"), "Tool name 'näm' is not valid"),
        (function("a" * 65), "is not valid"),
        (function("a\n"), "is not valid"),
        (function() | {"description": 3}, "description must be a text"),
        ({"name": "tool"}, "parameters must be a JSON schema of type object"),
        ({"name": "tool", "parameters": {"type": "string"}}, "of type object"),
        ({"name": "tool", "parameters": {"properties": {}}}, "of type object"),
        (function(properties=[]), "parameters/properties"),
        (function(properties={"a": {"type": "text"}}), "parameters/properties/a/type"),
        (function(required="a"), "parameters/required"),
        (function(properties={"a b": {}}), "Parameter name 'a b' is not valid"),
        (function(properties={"ü": {}}), "Parameter name 'ü' is not valid"),
        (function(properties={"a": {"$ref": "http://169.254.169.254/x"}}), "does not stay inside"),
        (function(properties={"a": {"$ref": "other.json"}}), "does not stay inside"),
        (function(properties={"a": {"$ref": "#name"}}), "does not stay inside"),
        (function(properties={"a": {"$ref": "#/$defs/A"}}), "leads nowhere"),
        (function(properties={"a": {"$ref": "#/type"}}), "leads to no schema"),
        (function(properties={"a": {"$ref": "#/properties/a"}}), "circle"),
        (
            function(properties={"a": {"anyOf": [{"$ref": "#/properties/b"}]}, "b": {"$ref": "#/properties/a"}}),
            "circle",
        ),
        (function(properties={"a": {"$id": "http://x/y", "type": "string"}}), "$id is not supported"),
        (function(properties={"a": {"$dynamicRef": "#a"}}), "$dynamicRef is not supported"),
        (function(properties={"a": deep(100)}), "nested too deeply"),
        (function(properties={"a": {"enum": ["x" * 200_000]}}), "longer than"),
        (function(properties={"a": {"default": float("nan")}}), "NaN"),
        (function(properties={"a": {"enum": [{1, 2}]}}), "not JSON"),
    ],
)
def test_it_names_what_is_wrong_with_a_schema(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_json_schema(schema)
    assert said in str(caught.value)
    assert len(str(caught.value)) <= 600


def test_it_refuses_a_long_chain_of_references() -> None:
    parts = {f"p{n}": {"$ref": f"#/properties/p{n + 1}"} for n in range(2000)} | {"p2000": {}}
    with pytest.raises(SchemaError, match="references in a row"):
        check_json_schema(function(properties=parts))
    with pytest.raises(SchemaError):
        check_json_schema(function(properties=dict(reversed(parts.items()))))


def test_it_checks_a_name_alone() -> None:
    check_tool_name("good-name_1")
    with pytest.raises(SchemaError):
        check_tool_name("")


class Leaf(BaseModel):
    size: int = Field(ge=1, description="Size")
    note: str | None = None


class Tree(BaseModel):
    """A tree."""

    leaf: Leaf = Field(description="The leaf")
    leaves: list[Leaf] = []
    kind: Literal["oak", "elm"] = "oak"
    inner: Tree | None = None


SOURCE = "def plant(leaf, leaves=None, kind=1, inner=None):\n    'Plants.'\n"


def test_it_builds_the_parameters_from_the_schema_of_a_model() -> None:
    made = derive(SOURCE, args_json_schema=Tree.model_json_schema()).json_schema
    leaf = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "Size"},
            "note": {"type": "string"},
        },
        "required": ["size"],
    }
    tree = {
        "type": "object",
        "properties": {
            "leaf": {**leaf, "description": "The leaf"},
            "leaves": {"type": "array", "items": leaf},
            "kind": {"type": "string", "enum": ["oak", "elm"]},
            "inner": {"$ref": "#/$defs/Tree"},
        },
        "required": ["leaf"],
    }
    assert made["name"] == "plant"
    assert made["description"] == "Plants."
    assert made["parameters"].pop("$defs") == {"Tree": {**tree, "description": "A tree."}}
    assert made["parameters"] == tree
    jsonschema.Draft202012Validator.check_schema(made["parameters"])


def test_it_describes_such_a_tool_from_the_request_or_the_model() -> None:
    bare = "def plant(leaf): return leaf\n"
    schema = Tree.model_json_schema()
    assert derive(bare, args_json_schema=schema).description == "A tree."
    assert derive(bare, args_json_schema=schema, description="Given.").description == "Given."
    assert derive(SOURCE, args_json_schema=schema, description="Given.").description == "Given."
    with pytest.raises(SchemaError, match="Function plant missing docstring"):
        derive(bare, args_json_schema={"type": "object", "properties": {}})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": {"$ref": "http://x/y"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"type": "object", "properties": {"a b": {}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A0"}},
            "$defs": {f"A{n}": {"anyOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 3} for n in range(40)} | {"A40": {}},
        },
    ],
)
def test_it_refuses_a_model_schema_that_cannot_be_used(schema: Json) -> None:
    with pytest.raises(SchemaError):
        derive(SOURCE, args_json_schema=schema)


def test_an_empty_model_schema_counts_as_none() -> None:
    with pytest.raises(SchemaError, match="lacks a type annotation"):
        derive(SOURCE, args_json_schema={})
