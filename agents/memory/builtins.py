"""The tools that every agent may have without an upload: their schemas, and what they do, in process.

They run inside the transaction that stores their result, so none of them is ever of unknown outcome. A new
one is a function here and a line in ``BUILTINS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.memory.edit import EditRefused, appended, edit_block, inserted, replaced_all, replaced_once
from agents.memory.search import BadSearch, read_search, search_conversation, search_text
from agents.models import Agent, Conversation
from tools import arguments as tool_arguments
from tools.models import ToolType
from tools.registry import Builtin

__all__ = ["BUILTINS", "SENT", "BuiltinResult", "builtin", "is_builtin", "run", "search_text"]

SENT = "Message sent."


@dataclass(frozen=True, slots=True)
class BuiltinResult:
    """``text`` is for the model, an error when not ``ok``. ``blocks_changed`` are primary keys of blocks."""

    ok: bool
    text: str
    blocks_changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a built-in tool; ``given`` are its checked arguments."""

    given: Mapping[str, Any]
    agent: Agent
    conversation: Conversation
    now: datetime


Work = Callable[[Asked], BuiltinResult]


@dataclass(frozen=True, slots=True)
class Entry:
    """A built-in tool: what it is on the wire, and what it does."""

    builtin: Builtin
    work: Work


def run(
    name: str, arguments: Mapping[str, Any], agent: Agent, conversation: Conversation, *, now: datetime
) -> BuiltinResult:
    """Do what the built-in tool ``name`` does, in the caller's transaction.

    Whatever is wrong with the arguments or with what they ask for is a result that is not ok. Raises
    KeyError for a name that is no built-in tool's.
    """
    entry = BUILTINS[name]
    try:
        tool_arguments.check(dict(arguments), entry.builtin.json_schema["parameters"])
        return entry.work(Asked(arguments, agent, conversation, now))
    except (tool_arguments.ArgumentsError, EditRefused, BadSearch) as error:
        return BuiltinResult(False, f"Error: {error}")


def is_builtin(name: str) -> bool:
    return name in BUILTINS


def builtin(name: str) -> Builtin:
    """What the built-in tool of this name is on the wire. Raises KeyError."""
    return BUILTINS[name].builtin


# --- what they do ---------------------------------------------------------------------------------


def _send_message(asked: Asked) -> BuiltinResult:
    if not asked.given["message"].strip():
        return BuiltinResult(False, "Error: message is empty; nothing was sent")
    return BuiltinResult(True, SENT)


def _memory_insert(asked: Asked) -> BuiltinResult:
    text, line = asked.given["new_string"], asked.given.get("insert_line")
    return _edit(asked, lambda value: inserted(value, text, -1 if line is None else int(line)))


def _memory_replace(asked: Asked) -> BuiltinResult:
    given = asked.given
    return _edit(asked, lambda value: replaced_once(value, given["old_string"], given["new_string"]))


def _core_memory_append(asked: Asked) -> BuiltinResult:
    return _edit(asked, lambda value: appended(value, asked.given["content"]))


def _core_memory_replace(asked: Asked) -> BuiltinResult:
    given = asked.given
    return _edit(asked, lambda value: replaced_all(value, given["old_content"], given["new_content"]))


def _edit(asked: Asked, change: Callable[[str], str]) -> BuiltinResult:
    block = edit_block(asked.agent, asked.given["label"], change)
    text = f"Memory block '{block.label}' now holds ({len(block.value)} of {block.limit} characters):\n{block.value}"
    return BuiltinResult(True, text, (block.pk,))


def _conversation_search(asked: Asked) -> BuiltinResult:
    timezone = asked.agent.timezone
    search = read_search(asked.given, timezone=timezone, now=asked.now)
    return BuiltinResult(True, search_conversation(asked.conversation, search, timezone=timezone))


# --- what they are --------------------------------------------------------------------------------


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_LABEL = _text("The label of the memory block.")


def _entry(work: Work, kind: ToolType, description: str, *, optional: tuple[str, ...] = (), **fields: Any) -> Entry:
    required = [name for name in fields if name not in optional]
    parameters = {"type": "object", "properties": fields, "required": required}
    name = work.__name__.lstrip("_")
    return Entry(Builtin({"name": name, "description": description, "parameters": parameters}, kind), work)


BUILTINS: dict[str, Entry] = {
    entry.builtin.name: entry
    for entry in (
        _entry(
            _send_message,
            ToolType.LETTA_CORE,
            "Say something to the user.",
            message=_text("What to say, in any script; emoji are fine."),
        ),
        _entry(
            _conversation_search,
            ToolType.LETTA_CORE,
            "Find earlier messages of this conversation, also those that have left your view. A message is "
            "found when it holds every word of the query, in any order, upper or lower case. Newest first.",
            optional=("roles", "limit", "start_date", "end_date"),
            query=_text("The words to look for; every character stands for itself."),
            roles={
                "type": "array",
                "items": {"type": "string", "enum": ["user", "assistant", "tool"]},
                "description": "Only messages of these roles.",
            },
            limit={"type": "integer", "description": "How many messages at most, 1 to 100; 10 if not given."},
            start_date=_text(
                "Only messages from this day or moment on: YYYY-MM-DD or YYYY-MM-DDTHH:MM, in your own time "
                "zone unless an offset is given."
            ),
            end_date=_text(
                "Only messages up to and including this day or moment; the same form as start_date. A date "
                "without a time means the whole day."
            ),
        ),
        _entry(
            _memory_insert,
            ToolType.LETTA_MEMORY_CORE,
            "Insert text into one of your memory blocks as lines of their own.",
            optional=("insert_line",),
            label=_LABEL,
            new_string=_text("The text to insert."),
            insert_line={
                "type": "integer",
                "description": "The number of the line to insert after: 0 for the top, -1 (if not given) for the end.",
            },
        ),
        _entry(
            _memory_replace,
            ToolType.LETTA_MEMORY_CORE,
            "Replace a text in one of your memory blocks. The old text must occur exactly once.",
            label=_LABEL,
            old_string=_text("The text to replace, exactly as it stands in the block."),
            new_string=_text("The text to put in its place; empty to delete."),
        ),
        _entry(
            _core_memory_append,
            ToolType.LETTA_MEMORY_CORE,
            "Add text at the end of one of your memory blocks.",
            label=_LABEL,
            content=_text("The text to add."),
        ),
        _entry(
            _core_memory_replace,
            ToolType.LETTA_MEMORY_CORE,
            "Replace a text in one of your memory blocks wherever it occurs.",
            label=_LABEL,
            old_content=_text("The text to replace, exactly as it stands in the block."),
            new_content=_text("The text to put in its place; empty to delete."),
        ),
    )
}
