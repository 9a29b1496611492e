"""What a test can make the model answer: plain values, no vendor in them. The only place that knows their JSON form."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

Json = Any

Kind = Literal["thinking", "redacted_thinking", "text", "tool_use", "unknown"]
Usage = Mapping[str, Json] | Literal["missing"] | None


@dataclass(frozen=True, slots=True)
class Block:
    """One block of an answer.

    ``text`` is the thinking, the text or the arguments' JSON text. ``pieces`` are the exact deltas to
    stream instead of a cut by size (an empty tuple streams none). ``raw`` is an unknown block as it stands.
    ``signature`` None: the server signs.
    """

    type: Kind
    text: str = ""
    name: str = ""
    id: str | None = None
    pieces: tuple[str, ...] | None = None
    signature: str | None = None
    raw: Mapping[str, Json] | None = None


def thinking(text: str, *, pieces: Sequence[str] | None = None, signature: str | None = None) -> Block:
    return Block("thinking", text, pieces=_tuple(pieces), signature=signature)


def redacted() -> Block:
    """Encrypted thinking that only this server recognises."""
    return Block("redacted_thinking")


def text(value: str, *, pieces: Sequence[str] | None = None) -> Block:
    return Block("text", value, pieces=_tuple(pieces))


def tokens(count: int, word: str = "tok ") -> Block:
    """A text of ``count`` deltas."""
    return Block("text", word * count, pieces=(word,) * count)


def tool_use(
    name: str,
    arguments: Mapping[str, Json] | str | None = None,
    id: str | None = None,
    *,
    pieces: Sequence[str] | None = None,
) -> Block:
    """A tool call. ``arguments`` is an object or raw text, valid JSON or not; ``id`` None: the server makes one."""
    body = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}))
    return Block("tool_use", body, name=name, id=id, pieces=_tuple(pieces))


def unknown_block(raw: Mapping[str, Json]) -> Block:
    return Block("unknown", raw=raw)


def _tuple(pieces: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if pieces is None else tuple(pieces)


FaultKind = Literal[
    "bad_request", "authentication", "billing", "no_credit", "permission", "not_found", "timeout", "conflict",
    "too_large", "prompt_too_long", "rate_limit", "quota", "server", "bad_gateway", "gateway_timeout", "overloaded",
    "invalid_json", "html", "empty_body",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, or one failure. Times are in milliseconds; events and bytes count from 0.

    stop_reason     the vendor's own word; None: tool_use when there is a call, else end_turn
    usage           None: made up from sizes; "missing": left out; else exactly this object
    delta_size      characters of a delta without ``pieces``
    first_byte      silence before the first byte
    delay           between two events; a JSON answer waits as long in all
    cut_at_event    hang up before this event; cut_at_byte: after this many bytes of the body
    error_at        send an error event (``fault``, else overloaded) instead of this event, and end
    hold, hold_at   wait before this event until ``release(hold)``
    events          (position, event name, data): further events, known to no SDK
    fault           refuse with this error; ``retry_after`` in seconds
    raw             send these bytes as the body, ``pace`` bytes at a time (0: at once)
    hang            never answer
    lost            act on the request, then hang up without an answer
    patch           (file and batch routes) fields to change in the ordinary answer
    outcome         (batch items) "canceled" or "expired" instead of an answer
    times           how often it is given; 0: for ever
    """

    blocks: tuple[Block, ...] = ()
    stop_reason: str | None = None
    usage: Usage = None
    delta_size: int = 8
    first_byte: float = 0
    delay: float = 0
    cut_at_event: int | None = None
    cut_at_byte: int | None = None
    error_at: int | None = None
    hold: str = ""
    hold_at: int = 0
    events: tuple[tuple[int, str, Mapping[str, Json]], ...] = ()
    fault: FaultKind | None = None
    message: str = ""
    retry_after: float | None = None
    raw: bytes | None = None
    pace: int = 0
    status: int = 200
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    lost: bool = False
    patch: Mapping[str, Json] | None = None
    outcome: str = ""
    times: int = 1


def answer(*blocks: Block, **options: Any) -> Answer:
    """An answer of these blocks; ``options`` are the fields of :class:`Answer`."""
    return Answer(blocks=blocks, **options)


def fault(kind: FaultKind, message: str = "", *, retry_after: float | None = None, times: int = 1) -> Answer:
    return Answer(fault=kind, message=message, retry_after=retry_after, times=times)


def raw(body: bytes, *, pace: int = 0, status: int = 200, content_type: str = "") -> Answer:
    """These bytes as the body: an event stream when one was asked for, else JSON, unless ``content_type`` says so."""
    return Answer(raw=body, pace=pace, status=status, content_type=content_type)


def hang() -> Answer:
    return Answer(hang=True)


def dropped() -> Answer:
    """The connection is closed before the first byte."""
    return Answer(cut_at_byte=0)


def lost(*, hang: bool = False) -> Answer:
    """The request is carried out, its answer never arrives; ``hang``: the connection stays open."""
    return Answer(lost=True, hang=hang)


def patched(**values: Json) -> Answer:
    """The ordinary answer of a file or batch route with other values in it."""
    return Answer(patch=values)


def ordinary() -> Answer:
    """The ordinary answer of a file or batch route: a place holder between failures."""
    return Answer(patch={})


STATUS_FAULTS: dict[int, FaultKind] = {
    400: "bad_request", 401: "authentication", 402: "billing", 403: "permission", 404: "not_found", 408: "timeout",
    409: "conflict", 413: "too_large", 429: "rate_limit", 500: "server", 502: "bad_gateway", 503: "overloaded",
    504: "gateway_timeout", 529: "overloaded",
}  # fmt: skip


def polled(entries: Sequence[Mapping[str, Json]]) -> list[Answer]:
    """The answers of successive polls: {"http": 200, other fields: changed in the ordinary answer},
    {"http": status, "retry_after": seconds} or {"http": "timeout"}."""
    answers = []
    for entry in entries:
        values = {name: value for name, value in entry.items() if name not in {"http", "retry_after"}}
        if entry["http"] == "timeout":
            answers.append(hang())
        elif entry["http"] == 200:
            answers.append(Answer(patch=values))
        else:
            answers.append(fault(STATUS_FAULTS[entry["http"]], retry_after=entry.get("retry_after")))
    return answers


def to_json(value: Answer) -> dict[str, Json]:
    """The JSON form, defaults left out; bytes are base64 under ``raw_base64``."""
    plain = Answer()
    result = {item.name: getattr(value, item.name) for item in fields(Answer)}
    result = {name: content for name, content in result.items() if content != getattr(plain, name)}
    if "blocks" in result:
        result["blocks"] = [
            {
                item.name: getattr(block, item.name)
                for item in fields(Block)
                if getattr(block, item.name) not in (None, "")
            }
            for block in value.blocks
        ]
    if value.raw is not None:
        result["raw_base64"] = base64.b64encode(result.pop("raw")).decode()
    return result


def from_json(value: Mapping[str, Json]) -> Answer:
    """The answer of its JSON form. ``raw`` may be text, ``raw_base64`` bytes; raises TypeError for unknown fields."""
    options = dict(value)
    options["blocks"] = tuple(block_from_json(block) for block in options.get("blocks", ()))
    options["events"] = tuple((event[0], event[1], event[2]) for event in options.get("events", ()))
    if "raw_base64" in options:
        options["raw"] = base64.b64decode(options.pop("raw_base64"))
    if isinstance(options.get("raw"), str):
        options["raw"] = options["raw"].encode()
    return Answer(**options)


def block_from_json(value: Mapping[str, Json]) -> Block:
    """A block of its JSON form; ``arguments`` (an object or text) may stand for ``text``."""
    options = dict(value)
    if "arguments" in options:
        arguments = options.pop("arguments")
        options["text"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return replace(Block(**options), pieces=_tuple(options.get("pieces")))
