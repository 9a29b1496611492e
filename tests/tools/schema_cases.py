"""The sources in tests/cases/tools and the schemas that they must have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.schema import decode_source

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
