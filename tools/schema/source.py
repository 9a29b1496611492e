"""Source text to syntax tree; never compiles, imports or runs anything."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from collections.abc import Iterator, Sequence

from tools.schema.errors import failed

MAX_BYTES = 256 * 1024
BOM = "\ufeff"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def decode_source(data: bytes) -> str:
    """The text of an uploaded source file, by its byte order mark or coding line, else UTF-8.

    Raises ``SchemaError`` when the bytes are not what they claim to be.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if not getattr(codecs.lookup(encoding), "_is_text_encoding", False):
            raise LookupError(encoding)
        return data.decode(encoding)
    except (SyntaxError, LookupError, ValueError):
        raise failed("Failed to parse source code: the file is neither UTF-8 nor what its coding line says") from None


def parse(source: str) -> ast.Module:
    """The syntax tree of ``source``. Raises ``SchemaError`` for anything that is no Python."""
    _check_text(source)
    try:
        return ast.parse(source.removeprefix(BOM))
    except SyntaxError as error:
        raise failed(f"Failed to parse source code: {error}") from None
    except (RecursionError, MemoryError):
        raise failed("Failed to parse source code: nested too deeply") from None
    except ValueError as error:
        raise failed(f"Failed to parse source code: {error}") from None


def choose_function(module: ast.Module, name: str | None) -> Function:
    """The last function at module level, or the last one called ``name``; methods and inner ones never."""
    functions = [node for node in module.body if isinstance(node, Function)]
    functions = functions or [node for node in statements(module.body) if isinstance(node, Function)]
    if not functions:
        raise failed("No functions found in source code")
    named = [function for function in functions if name in (None, function.name)]
    if not named:
        raise failed(f"No function '{name}' found at the top level of the source code")
    return named[-1]


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of the module's own scope: also those inside if, try and with, but no main block."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        waiting.extend(reversed(_inner(statement)))


def _check_text(source: str) -> None:
    if len(source) > MAX_BYTES or len(source.encode("utf-8", "replace")) > MAX_BYTES:
        raise failed(f"The source code is longer than {MAX_BYTES // 1024} KB")
    if "\0" in source:
        raise failed("Failed to parse source code: source code string cannot contain null bytes")
    if any("\ud800" <= character <= "\udfff" for character in source):
        raise failed("Failed to parse source code: source code cannot contain surrogates")


def _inner(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.If):
        return [] if _is_main_test(statement.test) else [*statement.body, *statement.orelse]
    if isinstance(statement, ast.Try | ast.TryStar):
        handled = [inner for handler in statement.handlers for inner in handler.body]
        return [*handled, *statement.orelse, *statement.finalbody, *statement.body]
    return list(statement.body) if isinstance(statement, ast.With) else []


def _is_main_test(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
