"""The fields of models, dataclasses and typed dictionaries."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.schema import metadata
from tools.schema.limits import read_limits, with_limits
from tools.schema.literals import literal
from tools.schema.scope import Scope

_DEFAULTS = ("default", "default_factory", "factory")


@dataclass(frozen=True, slots=True)
class Field:
    """A key of an object. ``limit`` adds the limits that stand beside its type."""

    name: str
    annotation: ast.expr
    required: bool
    description: str = ""
    limit: Callable[[dict[str, Any]], dict[str, Any]] | None = None


def model_field(name: str, statement: ast.AnnAssign, scope: Scope) -> Field:
    """A field of a pydantic model, under the name that its JSON has."""
    calls = _field_calls(statement, scope)
    required = not _has_default(statement.value, scope) and not any(map(_gives_default, calls))
    limits: dict[str, Any] = {}
    for call in calls:
        limits.update(read_limits(call, "pydantic.Field", scope.constants))
    alias = limits.get("validation_alias", limits.get("alias"))
    return Field(
        name=alias if isinstance(alias, str) else name,
        annotation=_spoken(statement.annotation, required, scope),
        required=required,
        description=_text(limits.get("description")),
        limit=lambda schema: with_limits(schema, limits),
    )


def record_field(name: str, statement: ast.AnnAssign, scope: Scope) -> Field | None:
    """A field of a dataclass; None when its constructor does not take it."""
    value = statement.value
    required = value is None
    if isinstance(value, ast.Call) and scope.qualified(value.func) in ("dataclasses.field", "pydantic.Field"):
        keywords = {keyword.arg: keyword.value for keyword in value.keywords}
        if literal(keywords.get("init"), {}) is False:
            return None
        required = not _gives_default(value)
    return Field(name=name, annotation=_spoken(statement.annotation, required, scope), required=required)


def typed_field(name: str, annotation: ast.expr, scope: Scope, *, total: bool) -> Field:
    """A key of a TypedDict."""
    annotation = metadata.unquoted(annotation)
    outer = scope.qualified(annotation.value) if isinstance(annotation, ast.Subscript) else ""
    required = {"typing.Required": True, "typing.NotRequired": False}.get(outer, total)
    return Field(name=name, annotation=annotation, required=required)


def _spoken(annotation: ast.expr, required: bool, scope: Scope) -> ast.expr:
    # Leaving an optional field out says the same as null, so Optional adds nothing to the schema there.
    part = None if required else metadata.optional_part(annotation, scope)
    return annotation if part is None else part


def _field_calls(statement: ast.AnnAssign, scope: Scope) -> list[ast.Call]:
    annotation = statement.annotation
    notes: list[ast.expr] = []
    if isinstance(annotation, ast.Subscript) and scope.qualified(annotation.value) == "typing.Annotated":
        notes = annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    found = [*notes, *([statement.value] if statement.value else [])]
    return [call for call in found if isinstance(call, ast.Call) and scope.qualified(call.func) == "pydantic.Field"]


def _has_default(value: ast.expr | None, scope: Scope) -> bool:
    if value is None or literal(value, {}) is Ellipsis:
        return False
    return not (isinstance(value, ast.Call) and scope.qualified(value.func) == "pydantic.Field")


def _gives_default(call: ast.Call) -> bool:
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg in _DEFAULTS)]
    return any(literal(value, {}) is not Ellipsis for value in given)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
