"""Schemas of the sources in tests/cases/tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tools.schema import SchemaError, ToolSchema, decode_source, derive, strict

CASES = Path(__file__).parent.parent / "cases" / "tools"
PREFIX = "Failed to derive json schema: Schema generation failed: "


def source(name: str) -> str:
    return decode_source(next(CASES.glob(f"{name}_*")).read_bytes())


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", **more, "description": description}


def integer(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", **more, "description": description}


NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["name"],
}
PART = {
    "type": "object",
    "properties": {"code": text("Part code"), "price": {"type": "number", "minimum": 0}},
    "required": ["code"],
}
BOX = {
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "parts": {"type": "array", "items": PART, "description": "What is inside"},
    },
    "required": ["label"],
}

# case: function, description, properties, required
WANTED: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "t01": (
        "plan_route",
        "Plan a delivery route.\n\nPicks the order of the stops.",
        {
            "start": text("Where the van starts."),
            "stops": integer("How many stops there are."),
            "fast": {"type": "boolean", "description": "Prefer motorways."},
        },
        ["start"],
    ),
    "t05": (
        "list_events",
        "List events.",
        {
            "user": text("Whose events."),
            "calendar": text("Which calendar.", default="main"),
            "count": integer("How many."),
            "home": text("Where."),
        },
        [],
    ),
    "t06": (
        "paint",
        "Paint a wall.",
        {
            "colour": text("Which colour.", enum=["red", "blue"]),
            "coats": integer("How many coats.", enum=[1, 2, 3]),
            "mode": text("How.", enum=["wet", "dry"]),
            "width": {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "Width or a name."},
            "note": text("Note."),
            "extra": {"anyOf": [{"type": "integer"}, {"type": "number"}], "description": "Extra."},
            "must": text("Odd default."),
        },
        ["colour", "coats"],
    ),
    "t07": (
        "mix",
        "Mix things.",
        {
            "a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "First."},
            "b": {"type": "array", "items": {"type": "integer"}, "description": "Second."},
            "c": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Third."},
            "d": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
                "description": "Fourth.",
            },
            "e": {"type": "array", "items": {"type": "integer"}, "description": "Fifth."},
            "f": {
                "anyOf": [{"type": "array", "items": {"type": "string"}, "uniqueItems": True}, {"type": "null"}],
                "description": "Sixth.",
            },
        },
        ["a", "b", "c", "d"],
    ),
    "t08": (
        "ship",
        "Ship boxes.",
        {
            "box": {**BOX, "description": "The first box."},
            "others": {"type": "array", "items": BOX, "description": "More boxes."},
        },
        ["box", "others"],
    ),
    "t09": (
        "answer",
        "Give an answer.",
        {
            "data": {
                "type": "object",
                "properties": {
                    "words": {"type": "array", "items": {"type": "string"}, "description": "Words"},
                    "hint": text("Hint"),
                    "blob": {"description": "Anything"},
                    "more": {},
                },
                "required": ["words", "blob"],
                "description": "The answer.",
            }
        },
        ["data"],
    ),
    "t11": (
        "cut",
        "Cut a text.",
        {"text": text("Text."), "start": integer("From."), "end": integer("To."), "step": integer("Step.")},
        ["text", "start", "end"],
    ),
    "t12": (
        "pay",
        "Pay.",
        {
            "wallet": {
                "type": "object",
                "properties": {"owner": {"type": "string"}, "coins": {"type": "integer"}},
                "required": ["owner"],
                "description": "Wallet.",
            },
            "amount": integer("Amount."),
            "unit": text("Unit.", enum=["eur", "usd"]),
            "memo": text("Memo."),
        },
        ["wallet", "amount"],
    ),
    "t13": (
        "move",
        "Move.",
        {
            "target": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": "integer"},
                    "names": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["x"],
                "description": "Where.",
            },
            "note": text("Note."),
            "meta": {
                "type": "object",
                "properties": {"who": {"type": "string"}},
                "required": [],
                "description": "Meta.",
            },
        },
        ["target", "note"],
    ),
    "t14": (
        "wait_and_say",
        "Wait, then say.",
        {"word": text("Word."), "seconds": {"type": "number", "description": "How long."}},
        ["word"],
    ),
    "t17": ("main_tool", "Doubles and adds one.", {"x": integer("Number.")}, ["x"]),
    "t18": ("outer", "Sum of squares.", {"n": integer("How many.")}, ["n"]),
    "t19": ("open_shop", "Open a shop.", {"city": text("City."), "hour": integer("Hour.")}, ["city", "hour"]),
    "t20": ("shout", "Shout.", {"word": text("Word.")}, ["word"]),
    "t21": (
        "store",
        "Store rows.",
        {
            "user": text("User."),
            "rows": {"type": "array", "items": {"type": "object", "additionalProperties": {}}, "description": "Rows."},
            "size": integer("Size.", minimum=0, maximum=9),
            "opt": integer("Option.", minimum=0, maximum=9),
        },
        ["user", "rows", "size"],
    ),
    "t23": (
        "odd",
        "Odd defaults.",
        {
            "a": {"type": "array", "items": {"type": "string"}, "description": "A."},
            "b": {"type": "object", "description": "B."},
            "c": {"type": "number", "description": "C."},
            "d": integer("D."),
            "e": text("E."),
            "f": {"description": "F."},
            "g": {"description": "G."},
            "h": {"type": "number", "description": "H."},
            "i": {"type": "boolean", "description": "I."},
        },
        [],
    ),
    "t26": (
        "tricky",
        "Tricky names.",
        {
            "name": text("Name."),
            "arguments": text("Arguments."),
            "request_heartbeat": {"type": "boolean", "description": "Beat."},
            "self_": integer("Self."),
            "id": text("Id."),
            "type": text("Type."),
        },
        ["name", "arguments", "request_heartbeat"],
    ),
    "t27": ("noisy", "Prints a lot.", {"n": integer("Lines.")}, ["n"]),
    "t32": ("count", "Counts.", {"n": integer("Up to.")}, ["n"]),
    "t33": ("use_it", "Uses a missing package.", {"a": text("A.")}, ["a"]),
    "t35": ("walk", "Counts nodes.", {"root": {**NODE, "description": "Root."}}, ["root"]),
    "t38": ("gruss", "Grüßt.", {"name": text("Name.")}, []),
}

REFUSED = {
    "t16": "Function add missing docstring",
    "t24": "Type error in schema generation: Parameter 'a' in function 'loose' lacks a type annotation",
    "t29": "No functions found in source code",
    "t30": "Failed to parse source code: '(' was never closed (<unknown>, line 7)",
}
NOT_STRICT = {"t07", "t09", "t21", "t23", "t35"}


@pytest.mark.parametrize("case", WANTED)
def test_it_derives_the_schema_of_a_case(case: str) -> None:
    name, description, properties, required = WANTED[case]
    schema = derive(source(case))
    assert schema.name == name
    assert schema.description == description
    assert schema.json_schema["name"] == name
    assert schema.json_schema["description"] == description
    parameters = dict(schema.json_schema["parameters"])
    assert parameters.pop("$defs", {}) == ({"Node": NODE} if case == "t35" else {})
    assert parameters == {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize("case", WANTED)
def test_it_makes_schemas_that_are_valid_json_schemas(case: str) -> None:
    parameters = derive(source(case)).json_schema["parameters"]
    jsonschema.Draft202012Validator.check_schema(parameters)
    json.dumps(parameters, allow_nan=False)


@pytest.mark.parametrize("case", WANTED)
def test_it_knows_which_cases_have_a_strict_form(case: str) -> None:
    rewritten = strict(derive(source(case)).json_schema["parameters"])
    assert (rewritten is None) == (case in NOT_STRICT)


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_a_case_with_the_known_text(case: str) -> None:
    with pytest.raises(SchemaError) as caught:
        derive(source(case))
    assert caught.value.message == str(caught.value) == PREFIX + REFUSED[case]


def test_every_case_is_in_a_table() -> None:
    files = {path.name.partition("_")[0] for path in CASES.iterdir()}
    assert files == WANTED.keys() | REFUSED.keys() | {"t37"}


def test_it_tells_how_the_function_is_called() -> None:
    assert derive(source("t14")).is_async
    assert derive(source("t26")).takes_agent_state
    assert not derive(source("t01")).is_async
    assert not derive(source("t01")).takes_agent_state


def test_it_takes_the_function_that_is_named() -> None:
    assert derive(source("t17"), name="helper").json_schema["description"] == "Helper."
    for name in ("square", "open", "absent"):
        with pytest.raises(SchemaError, match=f"No function '{name}' found"):
            derive(source("t18" if name == "square" else "t19"), name=name)


def test_it_needs_no_docstring_when_the_request_describes_the_tool() -> None:
    schema = derive(source("t16"), description="Adds.")
    assert schema.json_schema["description"] == schema.description == "Adds."
    assert schema.json_schema["parameters"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}


def test_it_gives_the_same_schema_with_and_without_the_future_import() -> None:
    with_import = source("t12")
    without = with_import.replace("from __future__ import annotations\n", "")
    assert derive(with_import) == derive(without)


def test_it_reads_new_syntax_where_the_server_does() -> None:
    def read() -> ToolSchema:
        return derive(source("t37"))

    if sys.version_info < (3, 12):
        with pytest.raises(SchemaError, match="line 1"):
            read()
    else:
        properties = read().json_schema["parameters"]["properties"]
        assert properties["items"]["items"] == {}
        assert properties["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "integer"}]
