"""The schemas of types that stand outside the source, by full name."""

from __future__ import annotations

from typing import Any

_ANY: dict[str, Any] = {}
_TEXT = {"type": "string"}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_ARRAY: dict[str, Any] = {"type": "array", "items": {}}
_SET: dict[str, Any] = {"type": "array", "items": {}, "uniqueItems": True}
_OBJECT = {"type": "object"}

# A list without an item type is an array of strings: the Letta server says so, and agents rely on it.
PLAIN: dict[str, dict[str, Any]] = {
    "builtins.int": {"type": "integer"},
    "builtins.float": {"type": "number"},
    "builtins.str": _TEXT,
    "builtins.bool": {"type": "boolean"},
    "builtins.list": _STRINGS,
    "builtins.dict": _OBJECT,
    "builtins.tuple": _ARRAY,
    "builtins.set": _SET,
    "builtins.frozenset": _SET,
    "builtins.object": _ANY,
    "builtins.bytes": _ANY,
    "builtins.bytearray": _ANY,
    "typing.Any": _ANY,
    "typing.Hashable": _ANY,
    "typing.Text": _TEXT,
    "typing.AnyStr": _TEXT,
    "typing.LiteralString": _TEXT,
    "typing.List": _STRINGS,
    "typing.Dict": _OBJECT,
    "typing.Tuple": _ARRAY,
    "typing.Set": _SET,
    "typing.FrozenSet": _SET,
    "typing.AbstractSet": _SET,
    "typing.MutableSet": _SET,
    "typing.Sequence": _ARRAY,
    "typing.MutableSequence": _ARRAY,
    "typing.Collection": _ARRAY,
    "typing.Iterable": _ARRAY,
    "typing.Deque": _ARRAY,
    "typing.Mapping": _OBJECT,
    "typing.MutableMapping": _OBJECT,
    "typing.DefaultDict": _OBJECT,
    "typing.OrderedDict": _OBJECT,
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    "decimal.Decimal": {"anyOf": [{"type": "number"}, {"type": "string"}]},
    "pathlib.Path": _TEXT,
    "pathlib.PurePath": _TEXT,
    "pydantic.StrictStr": _TEXT,
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.StrictFloat": {"type": "number"},
    "pydantic.StrictBool": {"type": "boolean"},
    "pydantic.FiniteFloat": {"type": "number"},
    "pydantic.PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "pydantic.NegativeInt": {"type": "integer", "exclusiveMaximum": 0},
    "pydantic.NonNegativeInt": {"type": "integer", "minimum": 0},
    "pydantic.NonPositiveInt": {"type": "integer", "maximum": 0},
    "pydantic.PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "pydantic.NegativeFloat": {"type": "number", "exclusiveMaximum": 0},
    "pydantic.NonNegativeFloat": {"type": "number", "minimum": 0},
    "pydantic.NonPositiveFloat": {"type": "number", "maximum": 0},
    "pydantic.EmailStr": {"type": "string", "format": "email"},
    "pydantic.AnyUrl": {"type": "string", "format": "uri"},
    "pydantic.AnyHttpUrl": {"type": "string", "format": "uri"},
    "pydantic.HttpUrl": {"type": "string", "format": "uri"},
    "pydantic.UUID4": {"type": "string", "format": "uuid"},
    "pydantic.SecretStr": _TEXT,
    "pydantic.Json": _TEXT,
    "pydantic.JsonValue": _ANY,
}

ARRAYS = frozenset(name for name, schema in PLAIN.items() if schema.get("type") == "array") - {
    "builtins.tuple",
    "typing.Tuple",
}
TUPLES = frozenset({"builtins.tuple", "typing.Tuple"})
MAPPINGS = frozenset(name for name, schema in PLAIN.items() if schema.get("type") == "object")
# Wrappers that say nothing about the value's shape.
WRAPPERS = frozenset(
    {"typing.ClassVar", "typing.Final", "typing.Required", "typing.NotRequired", "typing.ReadOnly", "typing.InitVar"}
)
# Functions of pydantic that return a type with limits.
CONSTRAINED = {
    "pydantic.conint": "builtins.int",
    "pydantic.confloat": "builtins.float",
    "pydantic.constr": "builtins.str",
    "pydantic.conlist": "builtins.list",
    "pydantic.conset": "builtins.set",
}
