"""What stands beside a type: quotes, and the metadata of Annotated."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tools.schema.errors import UnmappableError
from tools.schema.limits import is_limit, read_limits, with_limits
from tools.schema.scope import Scope

_MAX_QUOTED = 4000
_MAX_ALIASES = 20


def unquoted(node: ast.expr) -> ast.expr:
    """The annotation inside a quoted one. Raises :class:`UnmappableError` for quotes around no Python."""
    for _ in range(3):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return node
        node = _parsed(node.value)
    raise UnmappableError("an annotation that is quoted again and again")


def optional_part(node: ast.expr, scope: Scope) -> ast.expr | None:
    """``T`` of an annotation ``Optional[T]`` (also quoted or behind an alias), None for every other."""
    for _ in range(_MAX_ALIASES):
        node = unquoted(node)
        if isinstance(node, ast.Subscript):
            return node.slice if scope.qualified(node.value) == "typing.Optional" else None
        if not isinstance(node, ast.Name) or node.id not in scope.bound:
            return None
        node = scope.bound[node.id]
    return None


def annotated(schema: dict[str, Any], notes: Sequence[ast.expr], scope: Scope) -> dict[str, Any]:
    """``schema`` with the limits and the description that the metadata of ``Annotated`` holds."""
    for note in notes:
        if isinstance(note, ast.Constant) and isinstance(note.value, str):
            schema = {**schema, "description": note.value}
        elif isinstance(note, ast.Call):
            schema = _noted(schema, note, scope)
    return schema


def constrained(call: ast.Call, scope: Scope, schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with the limits in the keywords of a call such as ``conint(ge=0)``."""
    return with_limits(schema, read_limits(call, scope.qualified(call.func), scope.constants))


def _noted(schema: dict[str, Any], note: ast.Call, scope: Scope) -> dict[str, Any]:
    name = scope.qualified(note.func)
    if name == "typing.Doc" and note.args and isinstance(note.args[0], ast.Constant):
        return {**schema, "description": str(note.args[0].value)}
    if not is_limit(name):
        return schema
    limits = read_limits(note, name, scope.constants)
    schema = with_limits(schema, limits)
    description = limits.get("description")
    return {**schema, "description": description} if isinstance(description, str) else schema


def _parsed(text: str) -> ast.expr:
    if len(text) > _MAX_QUOTED:
        raise UnmappableError("a quoted annotation that is too long")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnmappableError(f"'{text[:60]}'") from None
