"""Events as stream chunks: the same rendering for SSE, websockets and replays."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from agents.events import Batch, Event, StepHead
from agents.wire.messages import DEFAULT_VIEW, Head, View, as_seen, date, part_otid
from lettaweb.lib.ids import wire_id
from lettaweb.lib.json import dumps

EVERYONE, NOT_TOKENS, ONLY_TOKENS = 0, 1, 2
TYPES = {"r": "reasoning_message", "a": "assistant_message", "c": "tool_call_message"}


class Chunk(NamedTuple):
    """One chunk: its JSON text, and whether it is the error event."""

    seq: int
    text: str
    error: bool = False


@dataclass(slots=True)
class Renderer:
    """Renders the events of one run as one client wants them.

    ``hidden`` are message uuids that were superseded: their deltas are left out.
    """

    run_id: str
    tokens: bool
    view: View = DEFAULT_VIEW
    hidden: set[str] = field(default_factory=set)
    _prefixes: dict[tuple[str, int, str], tuple[str, str]] = field(default_factory=dict)

    def chunks(self, batches: Iterable[Batch]) -> Iterator[Chunk]:
        for batch in batches:
            for number, event in enumerate(batch.events, start=batch.first):
                if event[0] not in TYPES:
                    yield from self._chunks(number, event)
                elif batch.head is not None and self._shows(event[0], batch.head):
                    yield Chunk(number, self._delta(number, event, batch.head))

    def _shows(self, kind: str, head: StepHead) -> bool:
        """Whether this client wants to see deltas of this kind."""
        return self.tokens and head.message not in self.hidden and self._wants(TYPES[kind])

    def _chunks(self, seq: int, event: Event) -> Iterator[Chunk]:
        kind = event[0]
        if kind == "m":
            yield from self._message(seq, event)
        elif kind == "error":
            yield Chunk(seq, dumps(self._error(seq, event[1])), error=True)
        else:
            yield Chunk(seq, dumps(self._plain(seq, event)))

    def _wants(self, message_type: str) -> bool:
        return self.view.types is None or message_type in self.view.types

    def _delta(self, seq: int, event: Event, head: StepHead) -> str:
        before, after = self._prefix(event, head)
        if event[0] == "c":
            call = {"name": event[3], "arguments": event[4], "tool_call_id": event[2]}
            text = dumps(call)
            return f'{before}{seq}{after}"tool_call":{text},"tool_calls":[{text}]}}'
        return f"{before}{seq}{after}{dumps(event[2])}{_TAIL[event[0]]}}}"

    def _prefix(self, event: Event, head: StepHead) -> tuple[str, str]:
        key = (head.message, event[1], event[0])
        found = self._prefixes.get(key)
        if found is None:
            found = self._prefixes[key] = self._made(event, head)
        return found

    def _made(self, event: Event, head: StepHead) -> tuple[str, str]:
        """The text of a delta's chunk before its number, and between number and what it says."""
        row = uuid.UUID(head.message)
        shown = Head(row, head.at, head.step, self.run_id).message(TYPES[event[0]], part_otid(row, event[1]))
        del shown["seq_id"]
        return dumps(shown)[:-1] + ',"seq_id":', _LEAD[event[0]]

    def _message(self, seq: int, event: Event) -> Iterator[Chunk]:
        message, audience = event[1], event[2]
        if audience == (NOT_TOKENS if self.tokens else ONLY_TOKENS):
            return
        for shown in as_seen(message, self.view):
            yield Chunk(seq, dumps({**shown, "seq_id": seq, "run_id": self.run_id}))

    def _error(self, seq: int, error: dict[str, Any]) -> dict[str, Any]:
        return {
            "message_type": "error_message",
            "run_id": self.run_id,
            "error_type": error["type"],
            "message": error["message"],
            "detail": error.get("detail") or "",
            "seq_id": seq,
        }

    def _plain(self, seq: int, event: Event) -> dict[str, Any]:
        if event[0] == "stop":
            return {"message_type": "stop_reason", "stop_reason": event[1], "seq_id": seq, "run_id": self.run_id}
        if event[0] == "usage":
            return {**event[1], "seq_id": seq, "run_id": self.run_id}
        self.hidden.update(wire.removeprefix("message-") for wire in event[1].get("superseded_message_ids", ()))
        return {**ping(self.run_id, seq), **event[1]}


_LEAD = {"r": ',"source":"reasoner_model","reasoning":', "a": ',"content":', "c": ","}
_TAIL = {"r": ',"signature":null', "a": ""}


def ping(run_id: str, seq: int | None) -> dict[str, Any]:
    """A ping chunk: ``seq`` is the number of the last event that was sent, None when there is none."""
    return {
        "id": wire_id("ping", uuid.uuid4()),
        "date": date(datetime.now(UTC)),
        "name": None,
        "message_type": "ping",
        "otid": None,
        "sender_id": None,
        "step_id": None,
        "is_err": None,
        "seq_id": seq,
        "run_id": run_id,
    }
