"""Runs one tool: source to module, arguments to types, result to one frame. Every tier and the unsafe mode use it."""

from __future__ import annotations

import asyncio
import inspect
import io
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any

from . import coerce, encode, state

MODULE = "letta_tool"
FILE = "tool.py"
HIDDEN_PARAMETERS = ("agent_state", "agent_id")
LONGEST_MESSAGE = 4000


class CappedOutput(io.RawIOBase):
    """A raw stream on ``descriptor`` that swallows what goes beyond ``limit`` bytes, so that a flood is no error."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor, self.room = descriptor, limit

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.room > 0:
            self.room -= os.write(self.descriptor, view[: self.room])
        return len(view)


def output(descriptor: int, limit: int) -> io.TextIOWrapper:
    """Return a text stream on ``descriptor`` that never fails on odd characters."""
    raw = io.BufferedWriter(CappedOutput(descriptor, limit))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def run(request: Mapping[str, Any], *, result: int, limits: Mapping[str, int]) -> None:
    """Run the request and write its frame to ``result``; raises nothing that the tool can cause."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        stream = output(descriptor, 2 * limits["output"])
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    try:
        data = _outcome(request, limits["result"])
    except BaseException as error:
        data = _last_words(error)
    _flush(sys.stdout)
    _flush(sys.stderr)
    _write_all(result, data)


def warm_up() -> None:
    """Run a small tool once in the zygote, so that no call pays for what every first one has to look up."""
    request = {
        "source": "def tool(a: int, b: str = '') -> int:\n    return a\n",
        "function": "tool",
        "arguments": {"a": 1},
        "agent_state": None,
        "agent_id": "",
    }
    encode.frame(_call(request), 1 << 20)
    del sys.modules[MODULE], linecache.cache[FILE]


def _outcome(request: Mapping[str, Any], limit: int) -> bytes:
    try:
        with_state = _call(request)
        return encode.frame(with_state, limit)
    except BaseException as error:
        sys.stderr.write(_own_traceback(error))
        _let_go(error)
        return _failure(error)


def _call(request: Mapping[str, Any]) -> dict[str, Any]:
    function = _function(load(request["source"]), request["function"])
    given = state.agent_state(request["agent_state"])
    value = _finish(_bound(function, request, given))
    return {"ok": True, "value": encode.plain(value), "blocks": state.changed_values(request["agent_state"], given)}


def load(source: str) -> types.ModuleType:
    """Run the source as a real module (dataclasses and postponed annotations look it up in sys.modules)."""
    code = compile(source, FILE, "exec", dont_inherit=True)
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    module = types.ModuleType(MODULE)
    module.__file__ = FILE
    sys.modules[MODULE] = module
    exec(code, module.__dict__)
    return module


def _function(module: types.ModuleType, name: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise NameError(f"the source defines no function {name}")
    found: Callable[..., Any] = function
    return found


def _bound(function: Callable[..., Any], request: Mapping[str, Any], given: state.Attributes | None) -> Any:
    """Call the function with its arguments; the hidden parameters always come from the server."""
    arguments = dict(request["arguments"])
    parameters = inspect.signature(function).parameters
    hidden = {"agent_state": given, "agent_id": request["agent_id"] or None}
    injected = {name: hidden[name] for name in HIDDEN_PARAMETERS if name in parameters}
    for name in HIDDEN_PARAMETERS:
        arguments.pop(name, None)
    positional, keywords = coerce.arguments_for(function, arguments)
    first = [name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]
    if any(name in first for name in injected):
        return _by_position(function, first, injected, arguments)
    return function(*positional, **keywords, **injected)


def _by_position(
    function: Callable[..., Any], first: list[str], injected: dict[str, Any], arguments: dict[str, Any]
) -> Any:
    """Positional-only parameters with a hidden one among them."""
    positional, keywords = coerce.arguments_for(function, arguments)
    names = [name for name in first if name in arguments][: len(positional)]
    values = {**keywords, **dict(zip(names, positional, strict=True)), **injected}
    ordered = [values.pop(name) for name in first if name in values]
    return function(*ordered, **values)


def _finish(value: Any) -> Any:
    """Await coroutines; collect what generators give."""
    if inspect.isasyncgen(value):
        return asyncio.run(_collect(value))
    if inspect.isawaitable(value):
        return _finish(asyncio.run(_await(value)))
    if inspect.isgenerator(value):
        return list(value)
    return value


async def _collect(values: Any) -> list[Any]:
    return [value async for value in values]


async def _await(value: Any) -> Any:
    return await value


def _message(error: BaseException) -> str:
    try:
        return str(error)[:LONGEST_MESSAGE]
    except BaseException as second:
        return f"<the text of the exception raised {type(second).__name__}>"


def _let_go(error: BaseException) -> None:
    """Free what the failed call's variables hold: its account needs memory too."""
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = None


def _own_traceback(error: BaseException) -> str:
    """The traceback with the tool's own lines only; empty text when even that fails."""
    try:
        summary = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False)
        _keep_own_lines(summary)
        return "".join(summary.format())
    except BaseException:
        return ""


def _keep_own_lines(summary: traceback.TracebackException, depth: int = 0) -> None:
    own = [frame for frame in summary.stack if frame.filename == FILE]
    summary.stack[:] = own
    for linked in (summary.__cause__, summary.__context__):
        if linked is not None and depth < 10:
            _keep_own_lines(linked, depth + 1)


def _failure(error: BaseException) -> bytes:
    kind = type(error).__name__
    return encode.frame({"ok": False, "type": kind[:200], "message": _message(error)}, 1 << 20)


def _last_words(error: BaseException) -> bytes:
    """What is said when even the failure could not be told, for want of memory or stack."""
    kind = "MemoryError" if isinstance(error, MemoryError) else "RecursionError"
    text = "the tool failed, and so did the account of it"
    return f'{{"ok":false,"type":"{kind}","message":"{text}"}}'.encode()


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except BaseException:
        return


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
