"""What the Messages API refuses inside ``messages``: roles, blocks, pairing of calls and results, thinking."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from tests.scripted.checks import NAME, image_fault
from tests.scripted.models import AnthropicModel
from tests.scripted.refusals import expect, refuse
from tests.scripted.signing import is_redacted, is_signed

Json = Any
Blocks = list[Mapping[str, Json]]

ID = re.compile(r"[a-zA-Z0-9_-]+")
USER_BLOCKS = {"text", "image", "tool_result", "document", "search_result"}
ASSISTANT_BLOCKS = {"text", "tool_use", "thinking", "redacted_thinking"}
BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}


def check_messages(body: Mapping[str, Json], model: AnthropicModel, *, alternate: bool) -> None:
    """Refuse messages that the API refuses. ``alternate``: also two messages of one role in a row. Raises Refused."""
    expect("messages" in body, "messages: Field required")
    messages = body["messages"]
    expect(isinstance(messages, list), "messages: Input should be a valid list")
    expect(messages, "messages: at least one message is required")
    expect(len(messages) <= 100_000, "messages: too many messages")
    for place, message in enumerate(messages):
        check_message(message, f"messages.{place}", final=place == len(messages) - 1)
    expect(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    turns = merged(messages)
    if alternate and len(turns) != len(messages):
        role = next(one["role"] for one, two in pairwise(messages) if one["role"] == two["role"])
        refuse(
            f'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles in a row'
        )
    check_pairs(turns)
    check_tools_declared(body, turns)
    check_end(turns, body, model)
    check_thinking_turn(turns, body)


def check_message(message: Json, where: str, *, final: bool) -> None:
    expect(isinstance(message, dict), f"{where}: Input should be a valid dictionary")
    for name in message:
        expect(name in ("role", "content"), f"{where}.{name}: Extra inputs are not permitted")
    role = message.get("role")
    expect(
        role != "system", 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter'
    )
    expect(role in ("user", "assistant"), f"{where}.role: Input should be 'user' or 'assistant'")
    expect("content" in message, f"{where}.content: Field required")
    content = message["content"]
    expect(isinstance(content, str | list), f"{where}.content: Input should be a valid list")
    if not (final and role == "assistant"):
        expect(
            content,
            f"{where}: all messages must have non-empty content except for the optional final assistant message",
        )
    if isinstance(content, str):
        expect(not content or content.strip(), "messages: text content blocks must contain non-whitespace text")
        return
    for place, block in enumerate(content):
        check_block(block, role, f"{where}.content.{place}")
        cited = role == "user" and block.get("citations") and block["type"] == "text"
        expect(not cited, f"{where}.content.{place}.text.citations: Extra inputs are not permitted")
    if role == "assistant" and content:
        ends_thinking = content[-1]["type"] in ("thinking", "redacted_thinking")
        expect(not ends_thinking, f"{where}: The final block in an assistant message cannot be `thinking`.")


def check_block(block: Json, role: str, where: str) -> None:
    expect(isinstance(block, dict), f"{where}: Input should be a valid dictionary")
    kind = block.get("type")
    allowed = USER_BLOCKS if role == "user" else ASSISTANT_BLOCKS
    if kind in USER_BLOCKS ^ ASSISTANT_BLOCKS and kind not in allowed:
        other = "assistant" if role == "user" else "user"
        refuse(f"{where}: `{kind}` blocks can only be in `{other}` messages")
    expect(kind in allowed, f"{where}: Input tag {kind!r} found using 'type' does not match any of the expected tags")
    fields = BLOCK_FIELDS.get(str(kind), set(block))
    for name in block:
        expect(name in fields, f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if kind in BLOCK_CHECKS:
        BLOCK_CHECKS[kind](block, f"{where}.{kind}")


def check_text(block: Mapping[str, Json], where: str, top: str = "messages") -> None:
    """A text block must have text that is not blank."""
    expect(isinstance(block.get("text"), str), f"{where}.text: Input should be a valid string")
    expect(block["text"], f"{top}: text content blocks must be non-empty")
    expect(block["text"].strip(), f"{top}: text content blocks must contain non-whitespace text")


def check_image(block: Mapping[str, Json], where: str) -> None:
    source = block.get("source")
    expect(isinstance(source, dict), f"{where}.source: Field required")
    assert isinstance(source, dict)
    if source.get("type") == "base64":
        fault = image_fault(source.get("media_type"), source.get("data"))
        expect(not fault, f"{where}.source.base64: {fault}")
        return
    expect(source.get("type") == "url", f"{where}.source: Input tag {source.get('type')!r} is none of 'base64', 'url'")
    expect(str(source.get("url", "")).startswith("https://"), f"{where}.source.url: Only HTTPS URLs are supported.")


def check_tool_use(block: Mapping[str, Json], where: str) -> None:
    for name in ("id", "name", "input"):
        expect(name in block, f"{where}.{name}: Field required")
    valid = isinstance(block["id"], str) and ID.fullmatch(block["id"])
    expect(valid, f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    named = isinstance(block["name"], str) and NAME.fullmatch(block["name"])
    expect(named, f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    expect(isinstance(block["input"], dict), f"{where}.input: Input should be a valid dictionary")


def check_tool_result(block: Mapping[str, Json], where: str) -> None:
    expect("tool_use_id" in block, f"{where}.tool_use_id: Field required")
    valid = isinstance(block["tool_use_id"], str) and ID.fullmatch(block["tool_use_id"])
    expect(valid, f"{where}.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content", "")
    expect(isinstance(content, str | list), f"{where}.content: Input should be a valid list")
    if block.get("is_error"):
        expect(content, f"{where}: content cannot be empty if `is_error` is true")
    for place, part in enumerate(content if isinstance(content, list) else []):
        expect(isinstance(part, dict), f"{where}.content.{place}: Input should be a valid dictionary")
        kind = part.get("type")
        expect(
            kind in ("text", "image", "document", "search_result"),
            f"{where}.content.{place}: unexpected block {kind!r}",
        )
        expect(
            kind == "text" or not block.get("is_error"),
            f"{where}: all content must be type `text` if `is_error` is true",
        )
        if kind in BLOCK_CHECKS:
            BLOCK_CHECKS[kind](part, f"{where}.content.{place}.{kind}")


def check_thinking_block(block: Mapping[str, Json], where: str) -> None:
    for name in ("thinking", "signature"):
        expect(name in block, f"{where}.{name}: Field required")
        expect(isinstance(block[name], str), f"{where}.{name}: Input should be a valid string")
    signed = is_signed(block["thinking"], block["signature"])
    expect(signed, f"{where}: Invalid `signature` in `thinking` block")


def check_redacted(block: Mapping[str, Json], where: str) -> None:
    expect(is_redacted(block.get("data")), f"{where}: Invalid `data` in `redacted_thinking` block")


BLOCK_CHECKS: dict[str, Callable[[Mapping[str, Json], str], None]] = {
    "text": check_text,
    "image": check_image,
    "tool_use": check_tool_use,
    "tool_result": check_tool_result,
    "thinking": check_thinking_block,
    "redacted_thinking": check_redacted,
}


# --- across messages ------------------------------------------------------------------------------


def merged(messages: list[Json]) -> list[tuple[str, Blocks]]:
    """(role, blocks) with neighbours of one role made one, as the API reads them."""
    turns: list[tuple[str, Blocks]] = []
    for message in messages:
        content = message["content"]
        blocks: Blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1] = (message["role"], turns[-1][1] + blocks)
        else:
            turns.append((message["role"], blocks))
    return turns


def check_pairs(turns: list[tuple[str, Blocks]]) -> None:
    """Each call is answered once, at the head of the next message; each result has its call right before."""
    seen: set[str] = set()
    calls: list[str] = []
    for place, (_role, blocks) in enumerate(turns):
        check_results(calls, blocks, place)
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        expect(len(calls) == len(set(calls)) and not seen & set(calls), "messages: `tool_use` ids must be unique")
        seen |= set(calls)
    unanswered(calls, len(turns) - 1)


def check_results(calls: list[str], blocks: Blocks, place: int) -> None:
    answered: list[str] = []
    for index, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        call, where = block["tool_use_id"], f"messages.{place}.content.{index}"
        expect(
            call in calls,
            f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` block "
            "must have a corresponding `tool_use` block in the previous message.",
        )
        expect(
            call not in answered,
            f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call}",
        )
        if any(before["type"] != "tool_result" for before in blocks[:index]):
            unanswered([call], place - 1)
        answered.append(call)
    unanswered([call for call in calls if call not in answered], place - 1)


def unanswered(calls: list[str], place: int) -> None:
    expect(
        not calls,
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    )


def check_tools_declared(body: Mapping[str, Json], turns: list[tuple[str, Blocks]]) -> None:
    used = any(block["type"] in ("tool_use", "tool_result") for _, blocks in turns for block in blocks)
    expect(body.get("tools") or not used, "Requests which include `tool_use` or `tool_result` blocks must define tools")


def check_end(turns: list[tuple[str, Blocks]], body: Mapping[str, Json], model: AnthropicModel) -> None:
    role, blocks = turns[-1]
    if role != "assistant":
        return
    expect(
        model.prefill,
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    if blocks and blocks[-1]["type"] == "text":
        last = blocks[-1]["text"]
        expect(last == last.rstrip(), "messages: final assistant content cannot end with trailing whitespace")
    expect(not thinks(body), "messages: prefilling assistant responses is not supported when thinking is enabled")


def thinks(body: Mapping[str, Json]) -> bool:
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def check_thinking_turn(turns: list[tuple[str, Blocks]], body: Mapping[str, Json]) -> None:
    """The turn that the last tool results belong to starts with thinking when it is on, and has none when it is off."""
    loop = last_loop(turns)
    if not loop:
        return
    place, blocks = loop[0]
    kind = blocks[0]["type"] if blocks else "text"
    if (body.get("thinking") or {}).get("type") == "enabled":
        expect(
            kind in ("thinking", "redacted_thinking"),
            f"messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks).",
        )
    if not thinks(body):
        found = next((at for at, part in loop for block in part if block["type"].endswith("thinking")), None)
        expect(
            found is None,
            f"messages.{found}: When thinking is disabled, an `assistant` message in the final position cannot "
            "contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
        )


def last_loop(turns: list[tuple[str, Blocks]]) -> list[tuple[int, Blocks]]:
    """(place, blocks) of the assistant messages of the tool loop that the last message answers; [] for none."""
    found: list[tuple[int, Blocks]] = []
    for place in range(len(turns) - 1, 0, -2):
        role, blocks = turns[place]
        results = [block for block in blocks if block["type"] == "tool_result"]
        whole_turn = len(results) == len(blocks) or not found
        if role != "user" or not results or not whole_turn:
            break
        found.insert(0, (place - 1, turns[place - 1][1]))
    return found
