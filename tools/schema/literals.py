"""Reading constants from a syntax tree without evaluating anything but literals."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

MAX_NODES = 2000


class NotLiteral(Exception):
    """An expression that only running the program would settle."""


class Missing:
    """The type of :data:`MISSING`."""


MISSING: Final = Missing()


def literal(node: ast.expr | None, names: Mapping[str, ast.expr]) -> Any:
    """The value of a literal expression, :data:`MISSING` for every other.

    ``names`` holds the expressions of names that are bound once at module level; a name stands for
    the literal that it is bound to. Calls, operators, subscripts and attributes are never followed.
    """
    if node is None:
        return MISSING
    try:
        return _value(node, names, [MAX_NODES])
    except (NotLiteral, TypeError, RecursionError):
        return MISSING


def _value(node: ast.expr, names: Mapping[str, ast.expr], left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise NotLiteral
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in names:
            return _value(names[node.id], names, left)
        case ast.UnaryOp():
            return _signed(node, _value(node.operand, names, left))
        case ast.BinOp(op=ast.Add()):
            return _joined(_value(node.left, names, left), _value(node.right, names, left))
        case ast.Tuple() | ast.List() | ast.Set():
            return _collection(node, [_value(item, names, left) for item in node.elts])
        case ast.Dict():
            return _mapping(node, names, left)
    raise NotLiteral


def _signed(node: ast.UnaryOp, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotLiteral
    if isinstance(node.op, ast.USub):
        return -value
    if isinstance(node.op, ast.UAdd):
        return value
    raise NotLiteral


def _joined(left: Any, right: Any) -> str:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    raise NotLiteral


def _collection(node: ast.Tuple | ast.List | ast.Set, items: list[Any]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(items)
    return set(items) if isinstance(node, ast.Set) else items


def _mapping(node: ast.Dict, names: Mapping[str, ast.expr], left: list[int]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise NotLiteral
        made[_value(key, names, left)] = _value(value, names, left)
    return made
