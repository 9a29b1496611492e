"""The default model: thinks, says a short thing, calls the tools it is told to call, quotes their results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.scripted.answers import Answer, Block, answer, text, thinking, tool_use
from tests.scripted.conversation import Conversation, Result

Json = Any

QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`")
NUMBER = re.compile(r"-?\d+")
TIMES = re.compile(r"(\d+) times")
FILLERS: dict[str, Json] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}, "string": "text"}


def reply(conversation: Conversation) -> Answer:
    """What the model says to this conversation; always the same for the same request."""
    calls = list(wanted_calls(conversation)) or list(forced_calls(conversation))
    if not conversation.parallel:
        calls = calls[:1]
    spoken = said(conversation, calls)
    blocks = [thinking(thought(conversation, calls))] if conversation.thinking else []
    return answer(*blocks, text(spoken), *calls)


def thought(conversation: Conversation, calls: list[Block]) -> str:
    if calls:
        return f"The user asks for {calls[0].name}. I will call it."
    if conversation.results:
        return "The tools have answered. I will report what they said."
    return "The user wrote to me. I will answer briefly."


def said(conversation: Conversation, calls: list[Block]) -> str:
    """The text of the answer: results word for word, then what is being done or a short reply."""
    parts = [quoted(result) for result in conversation.results]
    if calls:
        parts.append("I'll do that now.")
    elif not parts:
        parts.append(f"Understood. You wrote: {conversation.user.strip()[:200]}")
    elif conversation.user:
        parts.append(f"You also wrote: {conversation.user.strip()[:200]}")
    return "\n".join(parts)


def quoted(result: Result) -> str:
    name = result.name or "tool"
    body = result.text.strip() or "nothing"
    return f"The {name} call failed: {body}" if result.is_error else f"The {name} call returned: {body}"


# --- which calls ----------------------------------------------------------------------------------


def wanted_calls(conversation: Conversation) -> Iterator[Block]:
    """The calls that the user's words ask for: "call the NAME …", once each, or "N times" with a quoted input each."""
    if not conversation.calls:
        return
    for name, words in mentions(conversation):
        schema = conversation.tools[name]
        explicit = json_object(words)
        if explicit is not None:
            yield tool_use(name, explicit)
            continue
        inputs = [next(filter(None, groups), "") for groups in QUOTED.findall(words)]
        repeated = TIMES.search(words)
        rounds = inputs if repeated and len(inputs) > 1 else inputs[:1]
        wanted = int(repeated[1]) if repeated else 1
        rounds = (rounds + [rounds[-1] if rounds else ""] * wanted)[:wanted]
        for value in rounds:
            yield tool_use(name, fill(schema, value, TIMES.sub("", words)))


def mentions(conversation: Conversation) -> list[tuple[str, str]]:
    """(tool, the words that follow its mention up to the next one), for tools that are on offer."""
    names = "|".join(re.escape(name) for name in sorted(conversation.tools, key=len, reverse=True))
    if not names:
        return []
    found = list(re.finditer(rf"\bcall (?:the )?[`'\"]?({names})\b[`'\"]?", conversation.user, re.IGNORECASE))
    known = {name.lower(): name for name in conversation.tools}
    starts = [match.start() for match in found] + [len(conversation.user)]
    return [
        (known[match[1].lower()], conversation.user[match.end() : end])
        for match, end in zip(found, starts[1:], strict=False)
    ]


def forced_calls(conversation: Conversation) -> Iterator[Block]:
    """One call where the request forces one: the named tool, else send_message, else the first."""
    if not conversation.forced or not conversation.tools:
        return
    name = conversation.forced
    if name == "any":
        name = "send_message" if "send_message" in conversation.tools else next(iter(conversation.tools))
    yield tool_use(name, fill(conversation.tools[name], said(conversation, []), ""))


def json_object(words: str) -> dict[str, Json] | None:
    """The first JSON object in the words, when there is one."""
    start = words.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(words[start:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def fill(schema: Mapping[str, Json], value: str, words: str) -> dict[str, Json]:
    """Arguments for the schema's required properties: ``value`` for texts, the words' first number for numbers."""
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    return {
        name: argument(name, properties[name], value, words)
        for name in properties
        if name in required or name == "request_heartbeat"
    }


def argument(name: str, schema: Mapping[str, Json], value: str, words: str) -> Json:
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if name == "request_heartbeat":
        return re.search(r"request_heartbeat to true", words, re.IGNORECASE) is not None
    if schema.get("enum"):
        return schema["enum"][0]
    number = NUMBER.search(QUOTED.sub("", words))
    if kind in ("integer", "number") and number:
        return int(number[0])
    return value if kind == "string" and value else FILLERS.get(kind, "text")
