"""A decision as a form sends it: the verdict, and exactly what was shown when it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agents.actions.desk import PRESETS, Item, Verdict, answer, approve, deny
from lettaweb.lib.problems import Problem

ACTIONS = ("approve", "edit", "deny", "answer")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a form was made of: the version of the call and the digest of its arguments."""

    version: int
    digest: str


def seen(sent: Mapping[str, Any]) -> Seen:
    """Raises a :class:`Problem` 400 for a form that does not say what it was made of."""
    version, digest = str(sent.get("version", "")), str(sent.get("digest", ""))
    if not (version.isascii() and version.isdigit() and len(version) < 10 and len(digest) == 64):
        raise Problem(400, "This form does not say which call it shows; please open the call again.")
    return Seen(int(version), digest)


def action_of(sent: Mapping[str, Any]) -> str:
    action = str(sent.get("action", ""))
    if action not in ACTIONS:
        raise Problem(400, "Approve, edit, deny or answer: the form says none of them.")
    return action


def plain_verdict(action: str, sent: Mapping[str, Any]) -> Verdict:
    """The verdict of a form without edited arguments."""
    if action == "deny":
        return deny(reason(sent))
    if action == "answer":
        return answer(_lines(sent.get("result")), ok=sent.get("ok", "yes") != "no")
    return approve(note=_lines(sent.get("note")) or None)


def reason(sent: Mapping[str, Any]) -> str | None:
    """The reason of a denial: a preset, what was typed, or both in one text."""
    presets = {preset.key: preset.text for preset in PRESETS}
    parts = [presets.get(str(sent.get("preset", "")), ""), _lines(sent.get("reason")).strip()]
    return " ".join(part for part in parts if part) or None


def items(sent: list[str]) -> list[Item]:
    """Selected calls: ``uuid:version:digest`` each. Raises a :class:`Problem` 400 for anything else."""
    return [_item(text) for text in sent]


def _item(text: str) -> Item:
    try:
        uuid, version, digest = text.split(":")
        return Item(UUID(uuid), int(version), digest)
    except ValueError:
        raise Problem(400, "The selection cannot be read; please reload the page.") from None


def _lines(text: object) -> str:
    return str(text or "").replace("\r\n", "\n")
