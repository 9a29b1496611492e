"""A run's events on a socket: replay and live in one, the same chunks as over SSE, secrets masked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.consumers.socket import Socket
from agents.events import LogGone, read_events
from agents.models import Message, Run
from agents.policies import rows
from agents.views.replay import superseded
from agents.wire import redact
from agents.wire.chunks import Chunk, Renderer
from agents.wire.masking import masked
from agents.wire.messages import messages_of
from agents.wire.redact import Secrets
from lettaweb.lib.db import in_db_read
from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem

FRAME = 64 * 1024  # characters of chunks in one frame; clients cap their frames
SNAPSHOT = 200  # messages of a run whose log is gone


@dataclass(frozen=True, slots=True)
class Reading:
    """A run that may be read, and what its reader must not see."""

    run_pk: int
    wire: str
    agent_pk: int
    hidden: set[str] = field(default_factory=set)
    secrets: Mapping[str, Secrets] = field(default_factory=dict)


def reading_of(wire: str, agent_pk: int | None = None) -> Reading:
    """The run ``wire`` (of that agent); a :class:`Problem` 404 or 422 when there is none."""
    run = rows.run(wire)
    if agent_pk is not None and run.agent_id != agent_pk:
        raise Problem(404, f"Run with ID {wire} not found")
    return Reading(run.pk, run.wire_id, run.agent_id, superseded(run), redact.of_agent(run.agent))


async def tell_run(socket: Socket, reading: Reading, *, after: int, tokens: bool = True) -> None:
    """Send the events beyond ``after`` as they come, and ``end`` after the last one.

    Frames: ``events`` {run_id, last, chunks}: ``last`` is the cursor to come back with; ``reset`` {run_id,
    messages} when the log is not kept any more; ``end`` {run_id, last, status, stop_reason}.
    """
    renderer = Renderer(reading.wire, tokens, hidden=set(reading.hidden))
    last = after
    try:
        async for batches in read_events(reading.run_pk, after):
            last = batches[-1].last
            chunks = renderer.chunks(masked(batches, reading.secrets, tokens=tokens))
            for text in _frames(reading.wire, chunks, last):
                await socket.tell_text(text)
    except LogGone:
        await socket.tell("reset", run_id=reading.wire, messages=await in_db_read(_snapshot, reading))
    status, reason = await in_db_read(_ending, reading.run_pk)
    await socket.tell("end", run_id=reading.wire, last=last, status=status, stop_reason=reason)


def _frames(wire: str, chunks: Iterable[Chunk], last: int) -> Iterator[str]:
    """``chunks`` in frames of bearable size. The cursor of a frame covers only events that are whole in it."""
    some: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if some and size + len(chunk.text) > FRAME:
            yield _frame(wire, some, chunk.seq - 1)
            some, size = [], 0
        some.append(chunk)
        size += len(chunk.text)
    if some:
        yield _frame(wire, some, last)


def _frame(wire: str, chunks: Sequence[Chunk], last: int) -> str:
    said = ",".join(chunk.text for chunk in chunks)
    return f'{{"type":"events","run_id":{dumps(wire)},"last":{last},"chunks":[{said}]}}'


def _snapshot(reading: Reading) -> list[dict[str, Any]]:
    found = Message.objects.filter(run_id=reading.run_pk).select_related("run", "step").order_by("-pk")[:SNAPSHOT]
    stored = reversed(list(found))
    return [redact.message(wire, reading.secrets) for row in stored for wire in messages_of(row)]


def _ending(run_pk: int) -> tuple[str | None, str | None]:
    found = Run.objects.filter(pk=run_pk).values_list("status", "stop_reason").first()
    return found if found else (None, None)
