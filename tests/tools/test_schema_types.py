"""Annotations and their JSON schemas, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.type_sources import DOG, HELD, INTEGERS, NULLABLE, SPOT, STRINGS, read
from tools.schema import SchemaError


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("str", {"type": "string"}),
        ("bool", {"type": "boolean"}),
        ("list", STRINGS),
        ("List", STRINGS),
        ("list[int]", INTEGERS),
        ("List[List[str]]", {"type": "array", "items": STRINGS}),
        ("List[Optional[int]]", {"type": "array", "items": NULLABLE}),
        ("dict", {"type": "object"}),
        ("Dict", {"type": "object"}),
        ("Dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("dict[int, Any]", {"type": "object", "additionalProperties": {}}),
        (
            'Dict[Literal["a"], int]',
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "propertyNames": {"type": "string", "enum": ["a"]},
            },
        ),
        ("t.Mapping[str, str]", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("collections.abc.Sequence[int]", INTEGERS),
        ("deque[int]", INTEGERS),
        ("Iterable[int]", INTEGERS),
        ("set[int]", {**INTEGERS, "uniqueItems": True}),
        ("frozenset", {"type": "array", "items": {}, "uniqueItems": True}),
        ("tuple", {"type": "array", "items": {}}),
        ("Tuple[int, ...]", INTEGERS),
        ("tuple[()]", {"type": "array", "items": {}, "maxItems": 0}),
        (
            "Tuple[int, int]",
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer"}],
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        ("Any", {}),
        ("object", {}),
        ("bytes", {}),
        ("None", {"type": "null"}),
        ("int | None", NULLABLE),
        ("Union[int, None]", NULLABLE),
        ("None | int | int", {"anyOf": [{"type": "null"}, {"type": "integer"}]}),
        ("Union[int, Union[str, int]]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Union[int, Any]", {}),
        ('Literal["a", "b"]', {"type": "string", "enum": ["a", "b"]}),
        ("Literal[1, 2]", {"type": "integer", "enum": [1, 2]}),
        ("Literal[True]", {"type": "boolean", "enum": [True]}),
        ("Literal[-1]", {"type": "integer", "enum": [-1]}),
        (
            'Literal["a", 1, True, None]',
            {"type": ["string", "integer", "boolean", "null"], "enum": ["a", 1, True, None]},
        ),
        ('Literal["a", Literal["b", "a"]]', {"type": "string", "enum": ["a", "b"]}),
        ("Literal[Words.BYE]", {"type": "string", "enum": ["bye"]}),
        ("Number", {"type": "integer", "enum": [1, 2]}),
        ("Words", {"type": "string", "enum": ["hello", "bye"]}),
        ("Derived", {"type": "string", "enum": ["a"]}),
        ("Flags", {"type": "integer"}),
        ("Alias", INTEGERS),
        ("Chain", INTEGERS),
        ("Quoted", INTEGERS),
        ('"int"', {"type": "integer"}),
        ("\"List['int']\"", INTEGERS),
        ("T", {}),
        ("Bound", {"type": "integer"}),
        ("Either", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Annotated[int, Field(gt=0, lt=5.5)]", {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5.5}),
        ("Annotated[int, annotated_types.Ge(1)]", {"type": "integer", "minimum": 1}),
        ("Annotated[str, annotated_types.Len(1, 5)]", {"type": "string", "minLength": 1, "maxLength": 5}),
        ("Annotated[Optional[int], Field(ge=1)]", {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
        ("Annotated[float, Field(ge=float('inf'))]", {"type": "number"}),
        ("conint(ge=0, multiple_of=2)", {"type": "integer", "minimum": 0, "multipleOf": 2}),
        ("conlist(int, max_length=3)", {**INTEGERS, "maxItems": 3}),
        ("PositiveInt", {"type": "integer", "exclusiveMinimum": 0}),
        ("datetime.datetime", {"type": "string", "format": "date-time"}),
        ("uuid.UUID", {"type": "string", "format": "uuid"}),
        ("Decimal", {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        ("Path", {"type": "string"}),
        ("Dog", DOG),
        ("List[Dog]", {"type": "array", "items": DOG}),
        ("Roots", INTEGERS),
        (
            "Page[int]",
            {"type": "object", "properties": {"items": {"type": "array", "items": {}}}, "required": ["items"]},
        ),
        ("Spot", SPOT),
        (
            "Row",
            {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]},
        ),
        ("Holder.Held", HELD),
        ("Holder", {"type": "object", "properties": {"held": HELD}, "required": ["held"]}),
        ("Spot3", {**SPOT, "properties": {**SPOT["properties"], "z": {"type": "number"}}}),  # type: ignore[dict-item]
        (
            "Meta",
            {
                "type": "object",
                "properties": {"who": {"type": "string"}, "when": {"type": "string"}},
                "required": ["who"],
            },
        ),
        (
            "Point",
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            },
        ),
    ],
)
def test_it_maps_a_type(annotation: str, wanted: dict[str, Any]) -> None:
    parameters = read(annotation)
    assert parameters["properties"]["p"] == {**wanted, "description": "P."}
    assert parameters["required"] == ["p"]


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("Optional[int]", {"type": "integer"}),
        ("'Optional[int]'", {"type": "integer"}),
        ("t.Optional[Alias]", INTEGERS),
        ("Optional[Union[int, str]]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    ],
)
def test_it_requires_no_optional_parameter(annotation: str, wanted: dict[str, Any]) -> None:
    parameters = read(annotation)
    assert parameters["properties"]["p"] == {**wanted, "description": "P."}
    assert parameters["required"] == []


@pytest.mark.parametrize(
    ("annotation", "named"),
    [
        ("complex", "complex"),
        ("Callable[[int], str]", "Callable"),
        ("Plain", "Plain"),
        ("Nowhere", "Nowhere"),
        ("List[Nowhere]", "Nowhere"),
        ("'no python ('", "no python"),
        ("Dict[List[int], int]", "List[int]"),
        ("Dict[str]", "dictionary"),
        ("Literal[b'x']", "Literal"),
        ("Literal[len]", "Literal"),
        ("Literal[1e999]", "Literal"),
        ("Computed", "Computed"),
        ("NAME", "n"),
        ("LONG", "'a' * 3"),
        ("List[int][str]", "List[int]"),
        ("lambda: 1", "lambda"),
        ("Optional", "Optional"),
        ("type[int]", "type[int]"),
    ],
)
def test_it_names_the_type_and_the_parameter_that_json_has_no_word_for(annotation: str, named: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(annotation)
    message = str(caught.value)
    assert "Value error in schema generation: Python type " in message
    assert "has no corresponding JSON schema type (parameter 'p' in function 'tool'" in message
    assert named in message


def test_it_shares_types_that_hold_themselves() -> None:
    parameters = read("B")
    a = {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "required": []}
    b = {"type": "object", "properties": {"a": {"type": "array", "items": a}}, "required": ["a"]}
    assert parameters["properties"]["p"] == {**b, "description": "P."}
    assert parameters["$defs"] == {"B": b}
    json_type = {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#/$defs/Json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
        ]
    }
    parameters = read("Json")
    assert parameters["properties"]["p"] == {**json_type, "description": "P."}
    assert parameters["$defs"] == {"Json": json_type}


@pytest.mark.parametrize("alias", ["A = A", "A = B\nB = A", "A = Union[A, int]", "A = 'A'", "A = Optional[A]"])
def test_it_refuses_an_alias_that_never_ends(alias: str) -> None:
    with pytest.raises(SchemaError):
        read("A", f"from typing import *\n{alias}\n")


def test_it_refuses_models_that_grow_without_end() -> None:
    models = "".join(f"class M{n}(BaseModel):\n    a: M{n + 1}\n    b: M{n + 1}\n    c: M{n + 1}\n" for n in range(30))
    imports = "from __future__ import annotations\nfrom pydantic import BaseModel\n"
    head = f"{imports}{models}class M30(BaseModel):\n    x: int\n"
    with pytest.raises(SchemaError, match="too large"):
        read("M0", head)


@pytest.mark.parametrize(
    ("imports", "annotation"),
    [
        ("from typing import List as L", "L[int]"),
        ("import typing", "typing.List[int]"),
        ("import typing as ty", "ty.List[int]"),
        ("from typing_extensions import List", "List[int]"),
        ("try:\n    from typing import Nope\nexcept ImportError:\n    from typing import List as Nope", "List[int]"),
        ("if True:\n    from typing import List as L", "L[int]"),
        ("L = list", "L[int]"),
        ("import typing\nL = typing.List\nM = L", "M[int]"),
        ("", "List[int]"),
    ],
)
def test_it_follows_imports(imports: str, annotation: str) -> None:
    found = read(annotation, f"{imports}\n")["properties"]["p"]
    assert found == {**INTEGERS, "description": "P."}


@pytest.mark.parametrize(
    "model",
    [
        "from pydantic import BaseModel as M\nclass X(M):\n    a: int",
        "import pydantic\nclass X(pydantic.BaseModel):\n    a: int",
        "import pydantic as p\nclass X(p.BaseModel):\n    a: int = p.Field(...)",
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass X:\n    a: int",
        "import dataclasses as d\n@d.dataclass\nclass X:\n    a: int = d.field()",
        "import typing\nclass X(typing.TypedDict):\n    a: int",
        "from pydantic import BaseModel\nclass Y(BaseModel):\n    a: int\nclass X(Y):\n    pass",
    ],
)
def test_it_knows_models_however_they_are_imported(model: str) -> None:
    found = read("X", f"{model}\n\n")["properties"]["p"]
    assert found == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "description": "P.",
    }
