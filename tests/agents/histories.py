"""Stored histories for tests: short ways to write them, the recorded cases, and a strict reader of what comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agents.context import HistoryMessage
from agents.providers.base import (
    CallPart,
    ChatMessage,
    ImagePart,
    Part,
    ReasoningPart,
    RedactedReasoningPart,
    ResultPart,
    TextPart,
)

CASES = Path(__file__).resolve().parent.parent / "cases" / "histories"
ROLE = {"approval": "assistant"}
KIND = {"thinking": "reasoning", "redacted_thinking": "redacted"}


def said(role: str, *parts: dict[str, Any] | str, **fields: Any) -> HistoryMessage:
    """A stored message; a plain string stands for a text part."""
    made = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return HistoryMessage(uuid="00000000-0000-4000-8000-000000000000", role=role, parts=made, **fields)


def call(call_id: str, name: str = "look", arguments: Any = "{}") -> dict[str, Any]:
    return {"type": "call", "id": call_id, "name": name, "arguments": arguments, "gated": False}


def result(call_id: str, text: str = "found", *, status: str = "success", content: Any = None) -> dict[str, Any]:
    return {"type": "result", "id": call_id, "name": "look", "status": status, "text": text, "content": content}


def thought(text: str = "hm", signature: str = "c2lnbmVk") -> dict[str, Any]:
    return {"type": "reasoning", "text": text, "signature": signature, "provider": "anthropic"}


def image(data: str = "iVBORw0KGgoAAAAA", media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "media_type": media_type, "data": data, "url": ""}


# --- the recorded cases ---------------------------------------------------------------------------


def case(name: str) -> list[HistoryMessage]:
    """The stored history that the file ``name`` describes."""
    told = json.loads((CASES / name).read_text())
    if isinstance(told, dict):
        recipe = told["generate"]
        told = [{"role": recipe["role"], "content": recipe["text"] * recipe["times"]}]
    return [_stored(message) for message in told]


def _stored(message: dict[str, Any]) -> HistoryMessage:
    role = message["role"]
    if role == "tool":
        return said("tool", result(message["tool_call_id"], message["content"], status=message["status"]))
    if message.get("kind") == "response":
        return said("approval", *({"type": "decision", "sent": sent} for sent in message["approvals"]))
    calls = [call(told["id"], told["name"], told["arguments"]) for told in message.get("tool_calls", ())]
    return said(ROLE.get(role, role), *_content(message.get("content")), *calls)


def _content(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        return [] if content is None else [{"type": "text", "text": content}]
    return [
        {**part, "type": KIND.get(part["type"], part["type"]), "text": part.get("thinking") or part.get("text", "")}
        for part in content
    ]


# --- strict reading -------------------------------------------------------------------------------


def check(messages: Sequence[ChatMessage]) -> None:
    """Fail for whatever the strictest vendor refuses in ``messages``."""
    assert messages
    roles = [message.role for message in messages]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert roles[-1] == "user"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        assert message.parts
        check_parts(message)
        results = [part.id for part in message.parts if isinstance(part, ResultPart)]
        assert results == open_calls
        assert all(isinstance(part, ResultPart) for part in message.parts[: len(results)])
        open_calls = [part.id for part in message.parts if isinstance(part, CallPart)]
        assert len(set(open_calls)) == len(open_calls)
        assert not seen.intersection(open_calls)
        seen.update(open_calls)
    assert not open_calls


ALLOWED = {
    "user": (TextPart, ImagePart, ResultPart),
    "assistant": (TextPart, ReasoningPart, RedactedReasoningPart, CallPart),
}


def check_parts(message: ChatMessage) -> None:
    for part in message.parts:
        assert isinstance(part, ALLOWED[message.role])
        check_part(part)
    if message.role == "assistant":
        assert not isinstance(message.parts[-1], ReasoningPart | RedactedReasoningPart)
        kinds = [isinstance(part, CallPart) for part in message.parts]
        assert kinds == sorted(kinds)


def check_part(part: Part) -> None:
    if isinstance(part, TextPart):
        assert part.text.strip()
        plain(part.text)
    elif isinstance(part, ReasoningPart):
        assert part.signature.strip()
        plain(part.text + part.signature)
    elif isinstance(part, RedactedReasoningPart):
        assert part.data
    elif isinstance(part, CallPart):
        assert part.id.strip()
        assert part.name.strip()
        plain(part.id + part.name)
        value = json.loads(part.arguments, parse_constant=lambda name: 1 / 0)
        assert isinstance(value, dict)
        plain(json.dumps(value, ensure_ascii=False, allow_nan=False))
    elif isinstance(part, ImagePart):
        assert bool(part.data) != bool(part.url)
    else:
        check_result(part)


def check_result(part: ResultPart) -> None:
    if part.is_error:
        assert part.parts
        assert all(isinstance(inner, TextPart) for inner in part.parts)
    for inner in part.parts:
        assert isinstance(inner, TextPart | ImagePart)
        check_part(inner)


def plain(text: str) -> None:
    assert not re.search("[\0\ud800-\udfff]", text)


def texts(messages: Iterable[ChatMessage]) -> list[str]:
    """Every text, those inside results too, in order."""
    found: list[str] = []
    for message in messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ResultPart) else (part,)
            found += [piece.text for piece in inner if isinstance(piece, TextPart)]
    return found


# --- random histories -----------------------------------------------------------------------------

TEXT = st.sampled_from(["", " ", "\n", "x", "\0", "\ud83d", "\u200b", "text \n", "\ufeff\ud83d\ude00"])
IDS = st.sampled_from(["", " ", "a", "b", "a_2", "call", "\ud800"])
ARGUMENTS = st.sampled_from(["{}", "", "[", '{"a": "\\ud800"}', '{"a": NaN}', None, 7])
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXT.map(lambda text: {"type": "text", "text": text}),
    "image": st.sampled_from([image(), image(data=""), image(data="abc"), {"type": "image", "url": "https://x/y"}]),
    "reasoning": st.builds(thought, TEXT, TEXT),
    "redacted": TEXT.map(lambda data: {"type": "redacted", "data": data}),
    "call": st.builds(call, IDS, TEXT, ARGUMENTS),
    "odd": st.sampled_from([{}, {"type": "text"}, {"type": "call"}, {"type": "new"}, {"type": "decision"}]),
}
PARTS["result"] = st.builds(
    result,
    IDS,
    TEXT,
    status=st.sampled_from(["success", "error"]),
    content=st.one_of(st.none(), st.just("said"), st.lists(st.one_of(PARTS["text"], PARTS["image"]), max_size=3)),
)
MESSAGES = st.builds(
    HistoryMessage,
    uuid=st.just("u"),
    role=st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool", "approval", "summary"]),
    parts=st.lists(st.one_of(*PARTS.values()), max_size=5),
    context=st.sampled_from([0, 1, 1, 1, 2]),
    mark=st.sampled_from(["", "", "", "cancelled", "aborted"]),
)
