"""What a message request asks for, read and checked: the plain form that every message route shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Input:
    """One message from the outside. ``parts`` as stored."""

    role: str
    parts: Sequence[Mapping[str, Any]]
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a client says about one call. ``kind``: approve, deny, answer. ``sent`` as it came."""

    call_id: str
    kind: str
    sent: Mapping[str, Any]
    reason: str | None = None
    ok: bool = True
    text: str = ""
    content: Sequence[Mapping[str, Any]] | None = None
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()
    edited: str | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval item: verdicts by call, or the legacy form (``legacy``: approval_request_id, one verdict)."""

    verdicts: tuple[Verdict, ...]
    legacy: bool = False
    otid: str | None = None


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A whole request: an approval and what follows it, or messages; and the options of the run."""

    inputs: tuple[Input, ...]
    approval: Approval | None
    options: Mapping[str, Any]
    streaming: bool = False
    background: bool = False
    include_pings: bool | None = None
    callback_url: str | None = None

    @property
    def otids(self) -> list[str]:
        return [str(given.fields.get("otid")) for given in self.inputs]
