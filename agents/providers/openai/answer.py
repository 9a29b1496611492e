"""A chat completion put together, from stream chunks or from a whole completion; pure.

Compatible servers disagree on how calls are told apart in a stream: same index for all, ids repeated in every chunk,
no ids, the whole call once more at the end. ``Calls`` knows them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from agents.providers.base import (
    CallDelta,
    CallPart,
    CallStart,
    Delta,
    ModelResponse,
    Part,
    ProviderError,
    ReasoningDelta,
    ReasoningPart,
    StopReason,
    TextDelta,
    TextPart,
    Usage,
)
from agents.providers.failures import refusal, unusable
from agents.providers.lines import Joiner, arguments_of, count_of, load_object, mapping_of, text_of
from agents.providers.openai.wire import PROVIDER

VENDOR = "OpenAI"
STOPS: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


@dataclass(slots=True)
class Call:
    """A call while it grows. ``wire_id`` is what the server calls it, "" when it said none yet.

    ``whole``: its arguments did not come in pieces, so that nobody can see whether they were cut;
    ``again``: its label came once more after its end, what follows without a label is another call.
    """

    number: int
    id: str
    name: str
    index: int | None
    wire_id: str
    pieces: list[str] = field(default_factory=list)
    joiner: Joiner = field(default_factory=Joiner)
    whole: bool = False
    again: bool = False

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def complete(self) -> bool:
        return load_object(self.arguments) is not None

    def say(self, piece: str) -> list[Delta]:
        said = self.joiner.feed(piece)
        if not said:
            return []
        self.pieces.append(said)
        return [CallDelta(self.number, said)]

    def end(self) -> list[Delta]:
        """Say what is left; no arguments at all are an empty object."""
        rest = self.joiner.rest()
        if not (self.arguments + rest).strip():
            rest += "{}"
            self.whole = True
        if rest:
            self.pieces.append(rest)
        return [CallDelta(self.number, rest)] if rest else []


class Calls:
    """Sorts the pieces of calls to their calls."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.all: list[Call] = []
        self._names = names
        self._ids: set[str] = set()

    def feed(self, piece: Mapping[str, Any]) -> list[Delta]:
        """The deltas of one entry of ``tool_calls``."""
        function = mapping_of(piece.get("function"))
        index = piece.get("index") if isinstance(piece.get("index"), int) else None
        wire_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = arguments_of(function.get("arguments"))
        call = self._known(index, wire_id, name)
        if call is None or self._is_another(call, wire_id, name, arguments):
            label = name or (call.name if call is not None and call.again else "")
            return self._begin(index, wire_id, label, arguments) if label or wire_id or arguments.strip() else []
        if (name or wire_id) and call.complete:
            call.again = not arguments.strip()
            return []  # said once more, whole or its label only
        call.wire_id, call.name = call.wire_id or wire_id, call.name or self._names.get(name, name)
        return call.say(arguments)

    def _known(self, index: int | None, wire_id: str, name: str) -> Call | None:
        """The call that this piece may belong to: the latest with its id and place, else the latest in its place."""
        for call in reversed(self.all):
            same_place = index is None or call.index is None or call.index == index
            if wire_id and call.wire_id == wire_id and same_place:
                return call
        placed = [call for call in self.all if index is None or call.index == index]
        if not placed:
            return None
        latest = placed[-1]
        stranger = bool(wire_id) and bool(latest.wire_id)
        return None if stranger else latest

    def _is_another(self, call: Call, wire_id: str, name: str, arguments: str) -> bool:
        """Whether a piece begins a new call although place or id are those of ``call``."""
        same_id = bool(wire_id) and wire_id == call.wire_id
        if name and call.name and self._names.get(name, name) != call.name and (not same_id or call.complete):
            return True
        if not arguments.strip() or not call.complete:
            return False
        return call.again or (bool(name or wire_id) and load_object(arguments) != load_object(call.arguments))

    def _begin(self, index: int | None, wire_id: str, name: str, arguments: str) -> list[Delta]:
        own_id = wire_id if wire_id and wire_id not in self._ids else f"call_{uuid4().hex}"
        self._ids.add(own_id)
        call = Call(len(self.all), own_id, self._names.get(name, name), index, wire_id)
        self.all.append(call)
        return [CallStart(call.number, call.id, call.name), *call.say(arguments)]


class Assembly:
    """Takes the chunks of a chat completion one by one, in the order in which they came."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.stopped = False
        self.ended = False
        self.started = False
        self._calls = Calls(names or {})
        self._texts: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._joiners = {"text": Joiner(), "reasoning": Joiner()}
        self._usage: Mapping[str, Any] = {}
        self._stop = ""
        self._id = ""
        self._refused = False

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """The deltas of one chunk. Raises ProviderError for an error in its place."""
        if chunk.get("error") or chunk.get("object") == "error":
            raise self._failed(chunk)
        self._usage = mapping_of(chunk.get("usage")) or self._usage
        self._id = text_of(chunk.get("id")) or self._id
        choice = _first_choice(chunk)
        deltas = [] if self.stopped else self._say(mapping_of(choice.get("delta")))
        self.ended = chunk.get("done") is True
        finish = text_of(choice.get("finish_reason"))
        if not self.stopped and (finish or self.ended):
            deltas += self._stopped(finish)
        self.started = self.started or bool(deltas)
        return deltas

    def finish(self) -> ModelResponse:
        """The whole answer. Raises ProviderError when it announces a tool call and holds none."""
        stop: StopReason = "refusal" if self._refused else STOPS.get(self._stop, "end_turn")
        calls = [] if stop == "refusal" else self._calls.all
        if stop == "max_tokens" and calls and (calls[-1].whole or not calls[-1].complete):
            calls = calls[:-1]
        if STOPS.get(self._stop) == "tool_use" and not calls and not self._refused:
            raise ProviderError("no_tool_call", f"{VENDOR} announced a tool call and sent none", started=self.started)
        parts: list[Part] = []
        if thought := self._text("reasoning"):
            parts.append(ReasoningPart(thought, "", PROVIDER))
        if said := self._text("text"):
            parts.append(TextPart(said))
        parts += [CallPart(call.id, call.name, call.arguments) for call in calls]
        if calls and stop == "end_turn":
            stop = "tool_use"
        return ModelResponse(tuple(parts), stop, read_usage(self._usage), self._stop, self._id)

    # --- pieces

    def _say(self, message: Mapping[str, Any]) -> list[Delta]:
        """The deltas of a delta or of a whole message."""
        thought = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
        refused = text_of(message.get("refusal"))
        self._refused = self._refused or bool(refused)
        deltas: list[Delta] = [ReasoningDelta(piece) for piece in self._add("reasoning", thought)]
        deltas += [TextDelta(piece) for piece in self._add("text", _content(message.get("content")) + refused)]
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            deltas += self._calls.feed(mapping_of(call))
        return deltas

    def _add(self, kind: str, piece: str) -> list[str]:
        said = self._joiners[kind].feed(piece) if piece else ""
        self._texts[kind] += [said] if said else []
        return [said] if said else []

    def _stopped(self, finish: str) -> list[Delta]:
        """Nothing more will be said: say what was kept back."""
        self._stop, self.stopped = finish, True
        deltas: list[Delta] = []
        for kind, joiner in self._joiners.items():
            if rest := joiner.rest():
                self._texts[kind].append(rest)
                deltas.append(TextDelta(rest) if kind == "text" else ReasoningDelta(rest))
        return deltas + [delta for call in self._calls.all for delta in call.end()]

    def _text(self, kind: str) -> str:
        return "".join(self._texts[kind])

    def _failed(self, chunk: Mapping[str, Any]) -> ProviderError:
        known = refusal(VENDOR, chunk, status=None)
        if self.started:
            return unusable(VENDOR, f"{known.message} (in the middle of an answer)", detail=known.detail)
        return known


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = chunk.get("choices")
    return mapping_of(choices[0]) if isinstance(choices, list) and choices else {}


def _content(content: Any) -> str:
    """The text of a content, which some servers send in parts."""
    if not isinstance(content, list):
        return text_of(content)
    return "".join(text_of(mapping_of(part).get("text")) for part in content)


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """The tokens of a usage object in any of its spellings."""
    sent = [usage.get("prompt_tokens"), usage.get("input_tokens")]
    said = [usage.get("completion_tokens"), usage.get("output_tokens")]
    before = mapping_of(usage.get("prompt_tokens_details")) or mapping_of(usage.get("input_tokens_details"))
    after = mapping_of(usage.get("completion_tokens_details")) or mapping_of(usage.get("output_tokens_details"))
    return Usage(
        input=max(map(count_of, sent)),
        output=max(map(count_of, said)),
        cached=count_of(before.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens")),
        cache_write=count_of(before.get("cache_write_tokens")),
        reasoning=count_of(after.get("reasoning_tokens")),
        known=any(isinstance(count, int) for count in (*sent, *said)),
    )


def read_completion(body: Any, names: Mapping[str, str] | None = None) -> ModelResponse:
    """The response of a whole completion. Raises ProviderError when it is none."""
    whole = mapping_of(body)
    choice = _first_choice(whole)
    message = mapping_of(choice.get("message"))
    if whole.get("error") and not message:
        raise refusal(VENDOR, whole, status=None)
    if not message:
        raise unusable(VENDOR, "the answer holds no message", started=False)
    assembly = Assembly(names)
    calls = message.get("tool_calls")
    numbered = [{**mapping_of(call), "index": at} for at, call in enumerate(calls if isinstance(calls, list) else [])]
    delta = {**message, "tool_calls": numbered}
    finish = choice.get("finish_reason")
    assembly.feed({**whole, "choices": [{"delta": delta, "finish_reason": finish}], "done": True})
    return assembly.finish()
