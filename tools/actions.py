"""Everything that may happen to a tool: stored, changed, deleted. One permission check stands before each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction

from lettaweb.lib.holding import held
from lettaweb.lib.problems import Problem
from tools import policies, registry, runner, schema
from tools.models import Tool, ToolType

TRIES = 3
TRIALS = 6  # tools tried out at once
DEFAULT_CHAR_LIMIT = 50_000  # of what a source that is not stored returns
FIELDS = (
    "description",
    "tags",
    "source_type",
    "source_code",
    "json_schema",
    "args_json_schema",
    "return_char_limit",
    "pip_requirements",
    "npm_requirements",
    "default_requires_approval",
    "enable_parallel_execution",
    "metadata",
)

_trials = threading.BoundedSemaphore(TRIALS)


def upsert_tool(actor: policies.Actor, given: Mapping[str, Any]) -> Tool:
    """Store a tool under its function's name. What ``given`` leaves out stays as it was.

    A description that a person gave stays too; one that came from the source follows it. ``given`` holds
    fields of a tool without nulls, ``source_code`` among them. Raises a :class:`Problem` 400 for a source
    without a schema, 403 without the right.
    """
    policies.must_write(actor)
    fields = described(given)
    name = checked_name(fields["json_schema"]["name"])
    with transaction.atomic():
        tool, created = Tool.objects.get_or_create(name=name, defaults=fields)
        if not created:
            tool = Tool.objects.select_for_update(no_key=True).get(pk=tool.pk)
            _store(tool, fields | _kept(tool, given))
    return tool


def take_back(tool: Tool, former: Tool | None) -> None:
    """Undo an :func:`upsert_tool` of a larger action that failed; ``former`` is the row as it was, None for none."""
    if former is None:
        _drop(tool)
    else:
        former.save()


def update_tool(actor: policies.Actor, tool: Tool, given: Mapping[str, Any]) -> Tool:
    """Change a tool; a new source may rename it. ``given`` holds fields without nulls.

    Raises a :class:`Problem` 400 for a schema that does not fit, 409 for a name that is taken, 403
    without the right.
    """
    policies.must_write(actor)
    fields = _changes(tool, given)
    with transaction.atomic():
        tool = Tool.objects.select_for_update(no_key=True).get(pk=tool.pk)
        old_name = tool.name
        _rename(tool, fields)
        _store(tool, fields)
        if tool.name != old_name:
            registry.tell_renamed(tool, old_name)
    return tool


def delete_tool(actor: policies.Actor, tool: Tool) -> None:
    """Delete a tool; the layers above take it out of agents and rules in the same transaction."""
    policies.must_delete(actor)
    _drop(tool)


def _drop(tool: Tool) -> None:
    for tries_left in range(TRIES)[::-1]:
        try:
            with transaction.atomic():
                list(Tool.objects.select_for_update().filter(pk=tool.pk).values_list("pk"))
                registry.tell_deleted(tool)
                Tool.objects.filter(pk=tool.pk).delete()
                return
        except IntegrityError:  # a call of it was stored meanwhile
            if not tries_left:
                raise


def hold_tools(tools: Iterable[Tool]) -> None:
    """Keep tools from being deleted until the caller's transaction ends; take them before any agent's lock.

    Many may hold a tool at once. Raises a :class:`Problem` 404 for one that is gone.
    """
    wanted = {tool.pk: tool for tool in tools}
    rows = Tool.objects.filter(pk__in=wanted).order_by("pk").values_list("pk")
    found = {pk for (pk,) in held(rows, "KEY SHARE")}
    for pk, tool in wanted.items():
        if pk not in found:
            raise Problem(404, f"Tool with ID {tool.wire_id} not found")


def run_source(actor: policies.Actor, given: Mapping[str, Any]) -> runner.ToolResult:
    """Run a source that is not stored, with ``given["args"]``; waits for it, so call it outside transactions.

    Raises a :class:`Problem` 400 for a source without a schema, 403 without the right.
    """
    policies.must_write(actor)
    code = runner.Code(
        name=schema_of(given)["name"],
        source=given["source_code"],
        tool_id="",
        char_limit=DEFAULT_CHAR_LIMIT,
        pip_requirements=tuple(runner.requirement(entry) for entry in given.get("pip_requirements") or ()),
    )
    call = runner.sandbox_call(code, given["args"], call_id=f"run-{uuid4()}", environment=given.get("env_vars"))
    with trial():
        return runner.run_blocking(code, call)


@contextmanager
def trial() -> Iterator[None]:
    """A place among those that try out a tool; a :class:`Problem` 429 when all are taken.

    Each of them keeps a thread of the API waiting for its tool.
    """
    if not _trials.acquire(blocking=False):
        raise Problem(429, "Too many tools are being tried out; please try again", headers={"Retry-After": "2"})
    try:
        yield
    finally:
        _trials.release()


def add_base_tools(actor: policies.Actor) -> list[Tool]:
    """The rows of all built-in tools, made or repaired; a :class:`Problem` 403 without the right."""
    policies.must_write(actor)
    with transaction.atomic():
        return ensure_builtins()


def ensure_builtins() -> list[Tool]:
    """The rows of the built-in tools, made where they are missing and brought up to date where they differ."""
    known = {tool.name: tool for tool in Tool.objects.filter(name__in=[b.name for b in registry.builtins()])}
    return [_ensured(builtin, known.get(builtin.name)) for builtin in registry.builtins()]


def described(given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` with its JSON schema and its description: from the request, else from the source.

    All follow the source: what an earlier request said of its arguments does not outlive it. Raises a
    :class:`Problem` 400 whose text names what is wrong with the source.
    """
    fields = {name: given[name] for name in FIELDS if name in given}
    fields["json_schema"] = schema_of(given)
    fields.setdefault("args_json_schema", {})
    fields.setdefault("description", str(fields["json_schema"].get("description") or ""))
    return fields


def schema_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The function schema (name, description, parameters) of a source or as it was sent.

    Raises a :class:`Problem` 400 whose text names what is wrong, 422 for a language without a schema.
    """
    sent = given.get("json_schema")
    python = given.get("source_type", "python") == "python"
    if sent is None and given.get("source_type") == "typescript":
        raise Problem(422, "TypeScript tools must come with their json_schema")
    try:
        if sent is None:
            return _derived(given, None)
        derived = _derived({**given, "description": given.get("description") or "-"}, sent) if python else {}
        completed = {"parameters": {"type": "object", "properties": {}, "required": []}, **sent}
        completed["name"] = sent.get("name") or derived.get("name")
        completed.setdefault("description", given.get("description", ""))
        schema.check_json_schema(completed)
        return completed
    except schema.SchemaError as error:
        raise Problem(400, str(error)) from None


def checked_name(name: str) -> str:
    """``name`` unless a built-in tool has it; a :class:`Problem` 400 then."""
    if registry.is_builtin(name):
        raise Problem(400, f"Tool name '{name}' belongs to a built-in tool")
    return name


def _derived(given: Mapping[str, Any], sent: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema that the source has; with ``sent``, only proof that it defines the function meant there."""
    arguments = given.get("args_json_schema") if sent is None else {"type": "object", "properties": {}}
    name = None if sent is None else sent.get("name")
    found = schema.derive(
        given["source_code"], name=name, description=given.get("description"), args_json_schema=arguments
    )
    return found.json_schema


def _changes(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: given[name] for name in FIELDS if name in given}
    if registry.is_builtin(tool.name) and fields.keys() & {"source_code", "json_schema", "args_json_schema"}:
        raise Problem(400, f"The source and the schema of the built-in tool '{tool.name}' cannot be changed")
    if "source_code" in fields:
        return described(fields) | _kept(tool, fields)
    if "json_schema" in fields and fields["json_schema"].get("name", tool.name) != tool.name:
        raise Problem(400, f"The name in json_schema does not match the tool's name '{tool.name}'")
    if "description" in fields and "json_schema" not in fields:
        fields["json_schema"] = {**tool.json_schema, "description": fields["description"]}
    return fields


def _kept(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a stored tool that a new source must leave alone, because somebody gave it."""
    if "description" in given or given.get("json_schema") is not None or not _described_by_hand(tool):
        return {}
    kept: dict[str, Any] = {"description": tool.description}
    if tool.json_schema.get("description") == tool.description:
        kept["json_schema"] = {**schema_of(given), "description": tool.description}
    return kept


def _described_by_hand(tool: Tool) -> bool:
    """Whether the description is another than the one that the tool's source gives."""
    try:
        found = schema.derive(tool.source_code or "", name=tool.name, args_json_schema=tool.args_json_schema or None)
    except schema.SchemaError:
        return bool(tool.description)
    return tool.description != str(found.json_schema["description"])


def _rename(tool: Tool, fields: Mapping[str, Any]) -> None:
    name = str(fields.get("json_schema", {}).get("name", tool.name))
    if name == tool.name:
        return
    checked_name(name)
    if Tool.objects.filter(name=name).exists():
        raise Problem(400, f"Tool with name '{name}' already exists")
    tool.name = name


def _store(tool: Tool, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(tool, name, value)
    tool.save()


def _ensured(builtin: registry.Builtin, tool: Tool | None) -> Tool:
    fields = {
        "tool_type": builtin.tool_type,
        "json_schema": dict(builtin.json_schema),
        "description": str(builtin.json_schema.get("description", "")),
        "tags": [str(ToolType(builtin.tool_type))],
    }
    if tool is None:
        tool, _ = Tool.objects.get_or_create(name=builtin.name, defaults=fields)
    if any(getattr(tool, name) != value for name, value in fields.items()):
        _store(tool, fields)
    return tool


TREATMENT = (
    "risk",
    "expires_after",
    "expire_action",
    "on_interrupt",
    "default_requires_approval",
    "secret_fields",
    "network_hosts",
)


def treat_tool(actor: policies.Actor, tool: Tool, given: Mapping[str, Any]) -> Tool:
    """Change how people want a tool treated: risk, expiry, approval of new agents, what is secret or reachable.

    ``given`` holds checked values of :data:`TREATMENT`; None for ``expires_after`` means never. What waits
    already keeps its risk and its time. Raises a :class:`Problem` 403 without the right, 404 when it is gone.
    """
    policies.must_write(actor)
    with transaction.atomic():
        found = Tool.objects.select_for_update().filter(pk=tool.pk).first()
        if found is None:
            raise Problem(404, f"Tool with ID {tool.wire_id} not found")
        fields = {name: given[name] for name in TREATMENT if name in given}
        for name, value in fields.items():
            setattr(found, name, value)
        found.save(update_fields=[*fields, "updated_at"])
    return found
