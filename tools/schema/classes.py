"""Classes of the source as objects: pydantic models, dataclasses, named tuples, typed dictionaries, enums."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from tools.schema import literal_types
from tools.schema.errors import UnmappableError
from tools.schema.fields import Field, model_field, record_field, typed_field
from tools.schema.scope import Scope

Schema = dict[str, Any]
Write = Callable[[ast.expr], Schema]

_MODELS = frozenset({"pydantic.BaseModel", "pydantic.GenericModel", "pydantic_settings.BaseSettings"})
_MAX_BASES = 40


def class_schema(node: ast.ClassDef, scope: Scope, write: Write) -> Schema:
    """The schema of a class; ``write`` writes those of its fields.

    Raises :class:`UnmappableError` for a class whose JSON form is not known.
    """
    family = lineage(node, scope)
    bases = [scope.qualified(base) for member in family for base in _bases(member)]
    if any(base in literal_types.ENUMS for base in bases):
        return literal_types.enum_schema(node, bases, scope)
    if "pydantic.RootModel" in bases:
        return _root_schema(node, scope, write)
    reader = _reader(family, bases, scope)
    if reader is None:
        raise UnmappableError(node.name)
    fields: dict[str, Field] = {}
    for member in reversed(family):  # bases first; a class may give a field of its base anew
        fields.update((name, made) for name, made in reader(member))
    return object_schema(list(fields.values()), write)


def typed_dict_call(node: ast.Call, scope: Scope, write: Write) -> Schema:
    """The schema of ``TypedDict("Name", {"key": type})``."""
    if len(node.args) != 2 or not isinstance(node.args[1], ast.Dict):
        raise UnmappableError("a TypedDict without its fields")
    total = _is_total(node.keywords)
    pairs = zip(node.args[1].keys, node.args[1].values, strict=True)
    fields = [
        typed_field(str(key.value), value, scope, total=total) for key, value in pairs if isinstance(key, ast.Constant)
    ]
    return object_schema(fields, write)


def object_schema(fields: list[Field], write: Write) -> Schema:
    properties = {field.name: _property(field, write) for field in fields}
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required}


def lineage(node: ast.ClassDef, scope: Scope) -> list[ast.ClassDef]:
    """``node`` and the classes of the source that it stands on, itself first."""
    found = [node]
    for member in found:
        for base in _bases(member):
            known = scope.classes.get(base.id) if isinstance(base, ast.Name) else None
            if known is not None and known not in found and len(found) < _MAX_BASES:
                found.append(known)
    return found


def _property(field: Field, write: Write) -> Schema:
    schema = write(field.annotation)
    if field.limit is not None:
        schema = field.limit(schema)
    return {**schema, "description": field.description} if field.description else schema


def _bases(node: ast.ClassDef) -> Iterator[ast.expr]:
    for base in node.bases:
        yield base.value if isinstance(base, ast.Subscript) else base


def _reader(
    family: list[ast.ClassDef], bases: list[str], scope: Scope
) -> Callable[[ast.ClassDef], Iterator[tuple[str, Field]]] | None:
    if any(base in _MODELS for base in bases):
        return lambda member: model_fields(member, scope)
    if "typing.TypedDict" in bases:
        return lambda member: typed_fields(member, scope)
    if "typing.NamedTuple" in bases or any(_is_dataclass(member, scope) for member in family):
        return lambda member: record_fields(member, scope)
    return None


def model_fields(node: ast.ClassDef, scope: Scope) -> Iterator[tuple[str, Field]]:
    for name, statement in _annotated(node, scope):
        if not name.startswith("_") and name != "model_config":
            yield name, model_field(name, statement, scope)


def record_fields(node: ast.ClassDef, scope: Scope) -> Iterator[tuple[str, Field]]:
    for name, statement in _annotated(node, scope):
        made = record_field(name, statement, scope)
        if made is not None:
            yield name, made


def typed_fields(node: ast.ClassDef, scope: Scope) -> Iterator[tuple[str, Field]]:
    total = _is_total(node.keywords)
    for name, statement in _annotated(node, scope):
        yield name, typed_field(name, statement.annotation, scope, total=total)


def _annotated(node: ast.ClassDef, scope: Scope) -> Iterator[tuple[str, ast.AnnAssign]]:
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        outer = statement.annotation.value if isinstance(statement.annotation, ast.Subscript) else statement.annotation
        if scope.qualified(outer) not in ("typing.ClassVar", "dataclasses.KW_ONLY"):
            yield statement.target.id, statement


def _root_schema(node: ast.ClassDef, scope: Scope, write: Write) -> Schema:
    for name, statement in _annotated(node, scope):
        if name == "root":
            return write(statement.annotation)
    for base in node.bases:
        if isinstance(base, ast.Subscript) and scope.qualified(base.value) == "pydantic.RootModel":
            return write(base.slice)
    raise UnmappableError(node.name)


def _is_dataclass(node: ast.ClassDef, scope: Scope) -> bool:
    marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
    return any(scope.qualified(mark) == "dataclasses.dataclass" for mark in marks)


def _is_total(keywords: list[ast.keyword]) -> bool:
    return not any(
        keyword.arg == "total" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in keywords
    )
