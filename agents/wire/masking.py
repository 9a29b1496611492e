"""Events of a run without secrets, for people's screens; the numbers of the events stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agents.events import Batch, Event
from agents.wire.chunks import EVERYONE, NOT_TOKENS, ONLY_TOKENS
from agents.wire.redact import Secrets, message


def masked(batches: Iterable[Batch], secrets: Mapping[str, Secrets], *, tokens: bool) -> Iterator[Batch]:
    """``batches`` with the arguments of the tools in ``secrets`` masked.

    Pieces of a call cannot be masked one by one: an agent with secrets shows its calls whole, once.
    """
    if not secrets:
        yield from batches
        return
    unseen: Event = ["m", {"message_type": ""}, NOT_TOKENS if tokens else ONLY_TOKENS]
    for batch in batches:
        yield Batch(batch.first, [_event(event, secrets, unseen) for event in batch.events], batch.head)


def _event(event: Event, secrets: Mapping[str, Secrets], unseen: Event) -> Event:
    if event[0] == "c":
        return unseen
    if event[0] != "m":
        return event
    shown = message(event[1], secrets)
    if event[1]["message_type"] != "tool_call_message":
        return ["m", shown, event[2]]
    return unseen if event[2] == ONLY_TOKENS else ["m", shown, EVERYONE]
