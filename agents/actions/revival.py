"""Messages of a file turned into rows: the parts that :mod:`agents.wire.internal` once wrote out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from agents.context import estimate_tokens
from agents.memory.builtins import search_text
from agents.models import Conversation, Message, MessageContext, MessageRole

Sent = Mapping[str, Any]
Part = dict[str, Any]


@dataclass(slots=True)
class Revival:
    """One history being read. ``provider`` signed its reasoning; ``called`` are the names of calls by id."""

    provider: str
    called: dict[str, str] = field(default_factory=dict)

    def row(self, conversation: Conversation, sent: Sent, *, in_context: bool) -> Message:
        """The unsaved row of a message."""
        role, parts = self.read(sent)
        return Message(
            conversation=conversation,
            agent=conversation.agent,
            role=role,
            parts=parts,
            context=MessageContext.IN if in_context else MessageContext.OUT,
            created_at=sent.get("created_at") or timezone.now(),
            otid=_text_or_none(sent.get("otid")),
            name=_text_or_none(sent.get("name")),
            sender_id=_text_or_none(sent.get("sender_id")),
            group_id=_text_or_none(sent.get("group_id")),
            model=_text_or_none(sent.get("model")),
            approval_request_id=_text_or_none(sent.get("approval_request_id"), 300),
            tokens=estimate_tokens(parts),
            search_text=search_text(role, parts),
        )

    def read(self, sent: Sent) -> tuple[MessageRole, list[Part]]:
        """The role and the parts of a message."""
        role = sent["role"]
        if role in ("tool", "function"):
            return MessageRole.TOOL, list(self._results(sent))
        if role == "approval" and not _listed(sent.get("tool_calls")):
            return MessageRole.APPROVAL, list(_decisions(sent))
        if role in ("assistant", "approval"):
            gated = role == "approval"
            return MessageRole.ASSISTANT, [*self._said(sent), *self._calls(sent, gated=gated)]
        return MessageRole(role), list(self._said(sent))

    def _said(self, sent: Sent) -> Iterator[Part]:
        content = sent.get("content")
        if isinstance(content, str):
            yield _text(content)
        for part in _listed(content):
            made = self._part(part)
            if made is not None:
                yield made

    def _part(self, part: Sent) -> Part | None:
        match part.get("type"):
            case "text":
                return _text(part.get("text"))
            case "reasoning":
                signature = str(part.get("signature") or "")
                text = str(part.get("reasoning") or "")
                return {"type": "reasoning", "text": text, "signature": signature, "provider": self.provider}
            case "redacted_reasoning":
                return {"type": "redacted", "data": str(part.get("data") or ""), "provider": self.provider}
            case "image":
                return _image(part.get("source"))
        return None

    def _calls(self, sent: Sent, *, gated: bool) -> Iterator[Part]:
        for call in _listed(sent.get("tool_calls")):
            function = call.get("function")
            function = function if isinstance(function, Mapping) else {}
            name, arguments = str(function.get("name") or "tool"), function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            call_id = str(call.get("id") or "")
            self.called[call_id] = name
            yield {"type": "call", "id": call_id, "name": name, "arguments": text, "gated": gated}

    def _results(self, sent: Sent) -> Iterator[Part]:
        returns = _listed(sent.get("tool_returns"))
        if not returns:
            texts = [part["text"] for part in self._said(sent) if part["type"] == "text"]
            returns = [{"tool_call_id": sent.get("tool_call_id"), "func_response": "\n".join(texts)}]
        for result in returns:
            call_id = str(result.get("tool_call_id") or "")
            yield {
                "type": "result",
                "id": call_id,
                "name": self.called.get(call_id) or str(sent.get("name") or "tool"),
                "status": "error" if result.get("status") == "error" else "success",
                "text": _as_text(result.get("func_response")),
                "content": None,
                "stdout": _texts(result.get("stdout")),
                "stderr": _texts(result.get("stderr")),
            }


def _decisions(sent: Sent) -> Iterator[Part]:
    approvals: Iterable[Sent] = _listed(sent.get("approvals"))
    if not approvals and sent.get("approve") is not None:
        approvals = [{"type": "approval", "approve": sent["approve"], "reason": sent.get("denial_reason")}]
    for approval in approvals:
        yield {"type": "decision", "sent": dict(approval)}


def _image(source: Any) -> Part | None:
    if not isinstance(source, Mapping):
        return None
    given = {name: str(source.get(name) or "") for name in ("media_type", "data", "url")}
    return {"type": "image", **given}


def _text(value: Any) -> Part:
    return {"type": "text", "text": _as_text(value)}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _listed(value: Any) -> Sequence[Sent]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text_or_none(value: Any, longest: int = 200) -> str | None:
    return value[:longest] if isinstance(value, str) else None
