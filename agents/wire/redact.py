"""The one redactor: what leaves for people's screens, sockets, webhooks and logs goes through here.

An argument is secret when its tool says so (``Tool.secret_fields``: a name at any depth or a dotted path),
or its schema (``format: password`` or ``writeOnly``). A server tool that is gone cannot say any more what
was secret: then every value is masked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Agent, CallKind, ToolCall
from lettaweb.lib.json import dumps
from tools.arguments.shape import form_for, parameters_of, properties_of
from tools.models import Tool

MASK = "••••••"
MAX_DEPTH = 60  # of a schema that refers to itself
Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is secret among the arguments of one tool."""

    schema: Mapping[str, Any]
    names: frozenset[str] = frozenset()
    everything: bool = False

    @property
    def declared(self) -> bool:
        """Whether anything may be masked at all."""
        text = json.dumps(self.schema, default=str)
        return self.everything or bool(self.names) or '"password"' in text or '"writeOnly"' in text

    def mask(self, arguments: Mapping[str, Any]) -> Wire:
        """``arguments`` with every secret value replaced by :data:`MASK`; a null stays null."""
        return self._object(arguments, self.schema, ())

    def mask_text(self, text: str) -> str:
        """As :meth:`mask` for a JSON text; a text that is no JSON object is masked as a whole."""
        if not self.declared:
            return text
        try:
            given = json.loads(text)
        except ValueError:
            given = None
        return json.dumps(self.mask(given), ensure_ascii=False) if isinstance(given, dict) else MASK

    def texts(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The texts that :meth:`mask` hides in ``arguments``: what a tool must not repeat in its result."""
        return tuple(_hidden(arguments, self.mask(arguments))) if self.declared else ()

    def is_secret(self, name: str) -> bool:
        """Whether the argument ``name`` is secret as a whole."""
        return self._secret((name,), properties_of(self.schema).get(name))

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: tuple[str, ...]) -> Wire:
        parts = properties_of(schema)
        return {name: self._value(inner, parts.get(name), (*path, name)) for name, inner in value.items()}

    def _value(self, value: Any, part: Any, path: tuple[str, ...]) -> Any:
        if value is None or self._secret(path, part):
            return value if value is None else MASK
        if len(path) > MAX_DEPTH:
            return MASK
        form = form_for(value, part, parameters_of(self.schema)) if isinstance(part, Mapping) else {}
        if form is not part and _marked(form):
            return MASK
        if isinstance(value, Mapping):
            return self._object(value, form, path)
        if isinstance(value, list):
            return [self._value(item, form.get("items"), (*path, "")) for item in value]
        return value

    def _secret(self, path: tuple[str, ...], part: Any) -> bool:
        dotted = ".".join(name for name in path if name)
        return self.everything or path[-1] in self.names or dotted in self.names or _marked(part)


def _hidden(given: Any, shown: Any) -> Iterator[str]:
    """The texts in ``given`` that are gone in ``shown``, its masked twin."""
    if isinstance(shown, Mapping):
        yield from (text for name in shown for text in _hidden(given[name], shown[name]))
    elif isinstance(shown, list):
        yield from (text for pair in zip(given, shown, strict=True) for text in _hidden(*pair))
    elif shown == MASK:
        yield from _texts(given)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        inner = value.values() if isinstance(value, Mapping) else value
        yield from (text for one in inner for text in _texts(one))
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _marked(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    if part.get("format") == "password" or part.get("writeOnly") is True:
        return True
    branches = [*_list(part.get("anyOf")), *_list(part.get("oneOf")), *_list(part.get("allOf"))]
    return any(_marked(branch) for branch in branches)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def of_tool(tool: Tool) -> Secrets:
    names = frozenset(str(name) for name in tool.secret_fields or ())
    return Secrets(tool.json_schema.get("parameters") or {}, names)


def of_call(call: ToolCall) -> Secrets:
    """What is secret in ``call``; reads its tool and, for a client's tool, ``step.run``."""
    if call.tool is not None:
        return of_tool(call.tool)
    if call.kind == CallKind.CLIENT:
        return Secrets(_client_schema(call))
    return Secrets({}, everything=call.kind != CallKind.INVALID)


def of_agent(agent: Agent) -> dict[str, Secrets]:
    """The agent's tools that have secrets, by name."""
    found = {tool.name: of_tool(tool) for tool in agent.tools.all()}
    return {name: secrets for name, secrets in found.items() if secrets.declared}


def arguments_of(call: ToolCall) -> Wire:
    """The arguments that run, masked; empty when the model's text was no JSON object."""
    return _masked(of_call(call), call.runs_with)


def proposed_of(call: ToolCall) -> Wire:
    """The arguments that the model proposed, masked."""
    return _masked(of_call(call), call.arguments)


def masks(call: ToolCall) -> bool:
    """Whether something of the call is masked."""
    return MASK in dumps(arguments_of(call))


def message(wire: Wire, secrets: Mapping[str, Secrets]) -> Wire:
    """A wire message with the arguments of its calls masked."""
    if not secrets or not any(name in wire for name in ("tool_calls", "tool_call")):
        return wire
    shown = dict(wire)
    if isinstance(wire.get("tool_call"), Mapping):
        shown["tool_call"] = _call(wire["tool_call"], secrets)
    if isinstance(wire.get("tool_calls"), Sequence):
        shown["tool_calls"] = [_call(call, secrets) for call in wire["tool_calls"]]
    return shown


def _call(call: Mapping[str, Any], secrets: Mapping[str, Secrets]) -> Wire:
    known = secrets.get(str(call["name"]))
    return {**call, "arguments": known.mask_text(str(call["arguments"]))} if known else dict(call)


def _masked(secrets: Secrets, text: str) -> Wire:
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    return secrets.mask(given) if isinstance(given, dict) else {}


def _client_schema(call: ToolCall) -> Mapping[str, Any]:
    given = call.step.run.options.get("client_tools") or ()
    found: Wire = next((tool for tool in given if tool.get("name") == call.name), {})
    schema: Mapping[str, Any] = found.get("parameters") or {}
    return schema
