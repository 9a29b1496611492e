"""From an annotation to its JSON schema."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tools.schema import catalogue, classes, literal_types, metadata
from tools.schema.errors import UnmappableError
from tools.schema.scope import Scope

Schema = dict[str, Any]
MAX_TYPES = 4000
MAX_DEPTH = 60
MAX_SHOWN = 80


@dataclass(slots=True)
class Types:
    """One reading of a source's annotations.

    ``open`` holds the named types that are being written, ``shared`` those that hold themselves: they go
    to ``$defs``. ``left`` bounds the work: models in models in models grow without end otherwise.
    """

    scope: Scope
    open: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    left: int = MAX_TYPES
    depth: int = 0


def schema_of(node: ast.expr, types: Types) -> Schema:
    """The JSON schema of an annotation. Raises :class:`UnmappableError` for what JSON has no word for."""
    types.left -= 1
    types.depth += 1
    try:
        if types.left < 0 or types.depth > MAX_DEPTH:
            raise UnmappableError("a type that is too large")
        return _schema(node, types)
    finally:
        types.depth -= 1


def definitions(types: Types) -> dict[str, Schema]:
    """The ``$defs`` that the schemas written so far refer to."""
    made: dict[str, Schema] = {}
    while missing := [name for name in types.shared if name not in made]:
        types.open = [missing[0]]
        made[missing[0]] = _defined(missing[0], types)
        types.open = []
    return made


def shown(node: ast.expr) -> str:
    """An annotation as text, for messages."""
    try:
        return ast.unparse(node)[:MAX_SHOWN]
    except RecursionError:
        return "a type that is nested too deeply"


def _schema(node: ast.expr, types: Types) -> Schema:
    node = metadata.unquoted(node)
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.BinOp(op=ast.BitOr()):
            return _union(_alternatives(node), types)
        case ast.Subscript():
            return _generic(node, types)
        case ast.Name() | ast.Attribute():
            return _named(node, types)
        case ast.Call():
            return _called(node, types)
    raise UnmappableError(shown(node))


def _named(node: ast.Name | ast.Attribute, types: Types) -> Schema:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in types.scope.classes:
        node = ast.Name(node.attr)  # a class inside a class
    if isinstance(node, ast.Name):
        if node.id in types.scope.classes or node.id in types.scope.bound:
            return _local(node.id, types)
        if node.id in types.scope.type_variables:
            bound = types.scope.type_variables[node.id]
            return _type_variable([bound] if bound else [], types)
    plain = catalogue.PLAIN.get(types.scope.qualified(node))
    if plain is None:
        raise UnmappableError(shown(node))
    return copy.deepcopy(plain)


def _local(name: str, types: Types) -> Schema:
    if name in types.open:
        if name not in types.shared:
            types.shared.append(name)
        return {"$ref": f"#/$defs/{quote(name)}"}
    types.open.append(name)
    try:
        return _defined(name, types)
    finally:
        types.open.remove(name)


def _defined(name: str, types: Types) -> Schema:
    if name in types.scope.classes:
        return classes.class_schema(
            types.scope.classes[name], types.scope, lambda annotation: schema_of(annotation, types)
        )
    return schema_of(types.scope.bound[name], types)


def _called(node: ast.Call, types: Types) -> Schema:
    name = types.scope.qualified(node.func)
    if name == "typing.NewType" and len(node.args) == 2:
        return schema_of(node.args[1], types)
    if name in ("typing.TypeVar", "typing.ParamSpec"):
        bounds = [keyword.value for keyword in node.keywords if keyword.arg == "bound"]
        return _type_variable(bounds or node.args[1:], types)
    if name in catalogue.CONSTRAINED:
        return metadata.constrained(node, types.scope, _constrained_base(node, name, types))
    if name == "typing.TypedDict":
        return classes.typed_dict_call(node, types.scope, lambda annotation: schema_of(annotation, types))
    raise UnmappableError(shown(node))


def _constrained_base(node: ast.Call, name: str, types: Types) -> Schema:
    plain = copy.deepcopy(catalogue.PLAIN[catalogue.CONSTRAINED[name]])
    if plain["type"] == "array" and node.args:
        plain["items"] = schema_of(node.args[0], types)
    return plain


def _type_variable(bounds: Sequence[ast.expr], types: Types) -> Schema:
    return _union(bounds, types) if bounds else {}


def _generic(node: ast.Subscript, types: Types) -> Schema:
    name = types.scope.qualified(node.value)
    if not name and isinstance(node.value, ast.Name):
        return _named(node.value, types)
    arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    write = _GENERICS.get(name)
    if write is None or (not arguments and name not in catalogue.TUPLES):
        raise UnmappableError(shown(node))
    return write(name, arguments, types)


def _optional(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return _union([*arguments, ast.Constant(value=None)], types)


def _union_of(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return _union(arguments, types)


def _union(members: Sequence[ast.expr], types: Types) -> Schema:
    branches: list[Schema] = []
    for member in members:
        schema = schema_of(member, types)
        parts = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        branches.extend(part for part in parts if part not in branches)
    if {} in branches:
        return {}
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _alternatives(node: ast.expr) -> list[ast.expr]:
    members: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]


def _literals(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return literal_types.literal_schema(arguments, types.scope)


def _annotated(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return metadata.annotated(schema_of(arguments[0], types), arguments[1:], types.scope)


def _wrapped(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return schema_of(arguments[0], types)


def _array(name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    return {**catalogue.PLAIN[name], "items": schema_of(arguments[0], types)}


def _tuple(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis:
        return {"type": "array", "items": schema_of(arguments[0], types)}
    if not arguments:
        return {"type": "array", "items": {}, "maxItems": 0}
    members = [schema_of(argument, types) for argument in arguments]
    # Vendors that know no prefixItems want "items"; with maxItems it adds nothing for those that do.
    items = _union(arguments, types)
    return {
        "type": "array",
        "prefixItems": members,
        "items": items,
        "minItems": len(members),
        "maxItems": len(members),
    }


def _mapping(_name: str, arguments: Sequence[ast.expr], types: Types) -> Schema:
    if len(arguments) != 2:
        raise UnmappableError(f"a dictionary with {len(arguments)} type arguments")
    key = schema_of(arguments[0], types)
    names = literal_types.key_names(key)
    if names is None:
        raise UnmappableError(f"a dictionary with keys of type {shown(arguments[0])}")
    return {"type": "object", "additionalProperties": schema_of(arguments[1], types), **names}


_Writer = Callable[[str, Sequence[ast.expr], Types], Schema]

_GENERICS: dict[str, _Writer] = {
    "typing.Optional": _optional,
    "typing.Union": _union_of,
    "typing.Literal": _literals,
    "typing.Annotated": _annotated,
    **dict.fromkeys(catalogue.WRAPPERS, _wrapped),
    **dict.fromkeys(catalogue.ARRAYS, _array),
    **dict.fromkeys(catalogue.TUPLES, _tuple),
    **dict.fromkeys(catalogue.MAPPINGS, _mapping),
}
