"""What the names of a source stand for, read from its statements alone."""

from __future__ import annotations

import ast
import builtins
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.schema.source import statements

_SAME_MODULE = {
    "typing_extensions": "typing",
    "collections.abc": "typing",
    "collections": "typing",
    "pydantic.fields": "pydantic",
    "pydantic.main": "pydantic",
    "pydantic.v1": "pydantic",
    "pydantic.types": "pydantic",
    "pydantic.networks": "pydantic",
}
_SAME_NAME = {
    "typing.deque": "typing.Deque",
    "typing.defaultdict": "typing.DefaultDict",
    "dataclasses.InitVar": "typing.InitVar",
    "pydantic.dataclasses.dataclass": "dataclasses.dataclass",
}
_TYPING = frozenset(typing.__all__)
_BUILTINS = frozenset(dir(builtins))
_MAX_ALIASES = 20


@dataclass(slots=True)
class Scope:
    """The names of a module: imports by local name, classes, and the expressions that names are bound to.

    ``constants`` holds the names bound exactly once, ``bound`` the last expression of every name.
    """

    imports: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    bound: dict[str, ast.expr] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    type_variables: dict[str, ast.expr | None] = field(default_factory=dict)

    def qualified(self, node: ast.expr, aliases: int = _MAX_ALIASES) -> str:
        """The full name of a name or attribute (``typing.List``), behind aliases; "" for what the source defines."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        bound = self.bound.get(node.id) if node.id not in self.classes else None
        if isinstance(bound, ast.Name | ast.Attribute) and aliases:
            base = self.qualified(bound, aliases - 1)
        else:
            base = self._module_name(node.id)
        return _canonical(".".join([base, *reversed(parts)])) if base else ""

    def knows(self, name: str) -> bool:
        """Whether the source itself says what ``name`` stands for."""
        return name in self.classes or name in self.bound or name in self.type_variables or name in self.imports

    def _module_name(self, name: str) -> str:
        if name in self.classes or name in self.bound or name in self.type_variables:
            return ""
        if name in self.imports:
            return self.imports[name]
        if name in _BUILTINS:
            return f"builtins.{name}"
        if name in _TYPING:  # the Letta server put the names of typing into every tool's module
            return f"typing.{name}"
        return f"{self.stars[-1]}.{name}" if self.stars else ""


def read_scope(module: ast.Module) -> Scope:
    scope = Scope()
    for statement in statements(module.body):
        _read(statement, scope)
    for node in ast.walk(module):  # a class inside another one or in a function, if nothing else has its name
        if isinstance(node, ast.ClassDef) and not (scope.knows(node.name) or node.name in _BUILTINS | _TYPING):
            scope.classes[node.name] = node
    return scope


def add_type_parameters(node: ast.AST, scope: Scope) -> None:
    """Make the type parameters of a function, class or alias (Python 3.12) known."""
    for parameter in getattr(node, "type_params", ()):
        scope.type_variables[parameter.name] = getattr(parameter, "bound", None)


def _read(statement: ast.stmt, scope: Scope) -> None:
    match statement:
        case ast.Import():
            _read_import(statement, scope)
        case ast.ImportFrom():
            _read_import_from(statement, scope)
        case ast.ClassDef():
            scope.classes[statement.name] = statement
            add_type_parameters(statement, scope)
        case ast.Assign():
            _bind(statement.targets, statement.value, scope)
        case ast.AnnAssign(value=ast.expr() as value):
            _bind([statement.target], value, scope)
        case ast.AugAssign():
            _bind([statement.target], statement.value, scope, once=False)
        case _ if type(statement).__name__ == "TypeAlias":  # Python 3.12
            _bind([vars(statement)["name"]], vars(statement)["value"], scope)
            add_type_parameters(statement, scope)


def _read_import(statement: ast.Import, scope: Scope) -> None:
    for alias in statement.names:
        if alias.asname:
            scope.imports[alias.asname] = alias.name
        else:
            top = alias.name.partition(".")[0]
            scope.imports[top] = top


def _read_import_from(statement: ast.ImportFrom, scope: Scope) -> None:
    source = "." * statement.level + (statement.module or "")
    for alias in statement.names:
        if alias.name == "*":
            scope.stars.append(source)
        else:
            scope.imports[alias.asname or alias.name] = f"{source}.{alias.name}"


def _bind(targets: Iterable[ast.expr], value: ast.expr, scope: Scope, *, once: bool = True) -> None:
    for target in targets:
        if not isinstance(target, ast.Name):
            continue
        if once and target.id not in scope.bound:
            scope.constants[target.id] = value
        else:
            scope.constants.pop(target.id, None)
        scope.bound[target.id] = value


def _canonical(name: str) -> str:
    module, _, last = name.rpartition(".")
    name = f"{_SAME_MODULE.get(module, module)}.{last}" if module else name
    return _SAME_NAME.get(name, name)
