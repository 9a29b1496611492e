"""From a tool's source to what a model is told about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lettaweb.lib.text import UnfitError, clean_json, clean_text
from tools.schema import given, metadata
from tools.schema.docstring import Docs, read_docs
from tools.schema.errors import SchemaError, UnmappableError, failed, type_failed, value_failed
from tools.schema.literals import MISSING, literal
from tools.schema.scope import Scope, add_type_parameters, read_scope
from tools.schema.source import Function, choose_function, parse
from tools.schema.types import Types, definitions, schema_of, shown

_INJECTED = frozenset({"self", "agent_state", "agent_id"})
_MAX_DEFAULT = 1000


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as models see it, and what a runner must know of its function.

    ``json_schema`` has name, description and parameters (a JSON schema of type object).
    ``takes_agent_state`` and ``takes_agent_id`` tell of parameters that the server fills; ``optional``
    names the parameters that get None when the model leaves them out although they have no default.
    """

    name: str
    description: str
    json_schema: dict[str, Any]
    is_async: bool = False
    takes_agent_state: bool = False
    takes_agent_id: bool = False
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the function, in the order of its signature."""

    name: str
    annotation: ast.expr | None
    default: ast.expr | None


def derive(
    source: str,
    *,
    name: str | None = None,
    description: str | None = None,
    args_json_schema: Mapping[str, Any] | None = None,
) -> ToolSchema:
    """The schema of the tool that ``source`` defines. The source is only parsed, never run.

    The tool is the last function at module level, or the one called ``name``. ``args_json_schema``
    takes the place of the parameters' annotations and descriptions. ``description`` serves a function
    without a docstring. Raises :class:`SchemaError` with the text for the client.
    """
    try:
        module = parse(source)
        function = choose_function(module, name)
        schema = _tool_schema(function, module, description, args_json_schema)
        return _checked(schema)
    except RecursionError:
        raise failed("The source code is nested too deeply") from None
    except UnfitError as error:
        raise value_failed(str(error)) from None


def _tool_schema(
    function: Function, module: ast.Module, description: str | None, args_json_schema: Mapping[str, Any] | None
) -> ToolSchema:
    docs = _docs(function, description, args_json_schema)
    parameters = list(_parameters(function))
    names = {parameter.name for parameter in parameters}
    scope = read_scope(module)
    add_type_parameters(function, scope)
    visible = [parameter for parameter in parameters if parameter.name not in _INJECTED]
    optional: tuple[str, ...] = ()
    if args_json_schema:
        schema = given.parameters_schema(args_json_schema)
    else:
        schema, optional = _parameters_schema(visible, docs, scope)
    return ToolSchema(
        name=function.name,
        description=clean_text(description or "") or docs.description,
        json_schema={"name": function.name, "description": docs.description, "parameters": schema},
        is_async=isinstance(function, ast.AsyncFunctionDef),
        takes_agent_state="agent_state" in names,
        takes_agent_id="agent_id" in names,
        optional=optional,
    )


def _docs(function: Function, description: str | None, args_json_schema: Mapping[str, Any] | None) -> Docs:
    text = _docstring(function)
    if text:
        return read_docs(text, function.name)
    found = description or str(given.model_of(args_json_schema or {}).get("description") or "")
    if not found:
        raise failed(f"Function {function.name} missing docstring")
    return Docs(function.name, clean_text(found), complete=False)


def _docstring(function: Function) -> str:
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return ""


def _parameters(function: Function) -> Iterator[Parameter]:
    """All parameters that a call may name; ``*args`` and ``**kwargs`` are not for models."""
    arguments = function.args
    by_position = [*arguments.posonlyargs, *arguments.args]
    bare = len(by_position) - len(arguments.defaults)
    for argument, default in zip(by_position, [*[None] * bare, *arguments.defaults], strict=True):
        yield Parameter(argument.arg, argument.annotation, default)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield Parameter(argument.arg, argument.annotation, default)


def _parameters_schema(parameters: list[Parameter], docs: Docs, scope: Scope) -> tuple[dict[str, Any], tuple[str, ...]]:
    types = Types(scope)
    properties: dict[str, Any] = {}
    required: list[str] = []
    optional: list[str] = []
    for parameter in parameters:
        annotation = _annotation(parameter, docs.function)
        inner = _optional_part(annotation, parameter, docs, scope)
        properties[parameter.name] = _property(parameter, inner or annotation, docs, types)
        if parameter.default is None:
            (required if inner is None else optional).append(parameter.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    shared = _shared(types)
    return {**schema, "$defs": shared} if shared else schema, tuple(optional)


def _annotation(parameter: Parameter, function: str) -> ast.expr:
    if parameter.annotation is None:
        raise type_failed(f"Parameter '{parameter.name}' in function '{function}' lacks a type annotation")
    return parameter.annotation


def _optional_part(annotation: ast.expr, parameter: Parameter, docs: Docs, scope: Scope) -> ast.expr | None:
    try:
        return metadata.optional_part(annotation, scope)
    except UnmappableError as error:
        raise _no_type(error, parameter, docs.function) from None


def _property(parameter: Parameter, annotation: ast.expr, docs: Docs, types: Types) -> dict[str, Any]:
    described = docs.parameters.get(parameter.name, "")
    try:
        schema = schema_of(annotation, types)
    except UnmappableError as error:
        if docs.complete and not described:
            raise _undescribed(parameter, docs.function) from None
        raise _no_type(error, parameter, docs.function) from None
    description = described or schema.get("description", "")
    if not description and docs.complete:
        raise _undescribed(parameter, docs.function)
    default = _named_default(parameter, types.scope)
    shown_default = {} if default is MISSING else {"default": default}
    return {**schema, **shown_default, **({"description": description} if description else {})}


def _undescribed(parameter: Parameter, function: str) -> SchemaError:
    return value_failed(f"Parameter '{parameter.name}' in function '{function}' lacks a description in the docstring")


def _no_type(error: UnmappableError, parameter: Parameter, function: str) -> SchemaError:
    return value_failed(
        f"Python type {error} has no corresponding JSON schema type (parameter '{parameter.name}' in "
        f"function '{function}', annotated {shown(parameter.annotation) if parameter.annotation else ''})"
    )


def _named_default(parameter: Parameter, scope: Scope) -> Any:
    # A literal default stands in the signature and was never shown; what a name hides is worth showing.
    if not isinstance(parameter.default, ast.Name):
        return MISSING
    value = literal(parameter.default, scope.constants)
    if value is MISSING or value is None or len(repr(value)) > _MAX_DEFAULT:
        return MISSING
    try:
        return clean_json(value)
    except UnfitError:
        return MISSING


def _shared(types: Types) -> dict[str, Any]:
    try:
        return definitions(types)
    except UnmappableError as error:
        raise value_failed(f"Python type {error} has no corresponding JSON schema type") from None


def _checked(schema: ToolSchema) -> ToolSchema:
    """``schema`` as plain JSON under names that every vendor takes."""
    given.check_tool_name(schema.name)
    json_schema = clean_json(schema.json_schema)
    given.check_parameters(json_schema["parameters"])
    return replace(schema, json_schema=json_schema)
