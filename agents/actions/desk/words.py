"""Verdicts as people give them: plain values that are checked when they meet a call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from agents.actions.requests import Verdict
from agents.models import ToolCall
from lettaweb.lib.text import clean_text

WARN = timedelta(minutes=10)
MAX_REASON = 4000


@dataclass(frozen=True, slots=True)
class Preset:
    """A ready-made reason for a denial."""

    key: str
    text: str


PRESETS = (
    Preset("not_needed", "This is not needed."),
    Preset("wrong_arguments", "The arguments are wrong."),
    Preset("wrong_moment", "Not now; wait until you are asked again."),
    Preset("not_allowed", "This is not allowed."),
    Preset("ask_first", "Ask the user first."),
    Preset("by_hand", "A person will do this by hand."),
)


def warn_before() -> timedelta:
    """How long before it expires a call is shown as urgent."""
    return WARN


def approve(arguments: str | None = None, *, note: str | None = None) -> Verdict:
    """Yes: it runs (for a call of unknown outcome: it did not happen, run it).

    ``arguments``: the whole arguments as a JSON text when a person changed them. A ``note`` is kept and
    shown to people; it is never a denial.
    """
    return Verdict("", "approve", {}, reason=_said(note), edited=arguments)


def deny(reason: str | None = None) -> Verdict:
    """No, and why (for a call of unknown outcome: tell the agent that nobody knows)."""
    return Verdict("", "deny", {}, reason=_said(reason))


def answer(text: str, *, ok: bool = True) -> Verdict:
    """The result of the tool, given by a person (for a call of unknown outcome: it happened, with this result)."""
    return Verdict("", "answer", {}, ok=ok, text=clean_text(text))


def addressed(verdict: Verdict, call: ToolCall) -> Verdict:
    """``verdict`` about ``call``, with the approval that the wire shows for it."""
    return replace(verdict, call_id=call.call_id, sent=_sent(verdict, call))


def _sent(verdict: Verdict, call: ToolCall) -> dict[str, Any]:
    if verdict.kind == "answer":
        return {
            "type": "tool",
            "tool_call_id": call.call_id,
            "tool_return": verdict.text,
            "status": "success" if verdict.ok else "error",
            "stdout": None,
            "stderr": None,
        }
    yes = verdict.kind == "approve"
    return {"type": "approval", "tool_call_id": call.call_id, "approve": yes, "reason": verdict.reason}


def _said(text: str | None) -> str | None:
    kept = clean_text(text).strip() if text else ""
    return kept[:MAX_REASON] or None
