"""Ask the model and let readers follow its answer as it comes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import aclosing

from agents import providers
from agents.events import Event, Fence, StepHead, hub, writer
from agents.events.writer import Stream
from agents.executor.deltas import Numbering
from agents.executor.repeat import Differs, Repeat
from agents.executor.storing import stored
from agents.loop import Answered, Ask, AskFailed, Lost, Streamed
from agents.loop.supersede import supersede
from agents.providers.base import Delta, ModelResponse, ProviderError
from lettaweb.lib.faults import reach


async def ask(fence: Fence, order: Ask) -> Answered | AskFailed:
    """The model's answer to ``order``; its deltas go into the log where somebody wants to follow them."""
    if not order.stream and not order.shown:
        return await _ask_whole(order)
    return await _ask_streamed(_Answer(fence, order))


async def _ask_whole(order: Ask) -> Answered | AskFailed:
    numbering, begun = Numbering(order), time.monotonic_ns()
    try:
        response = await providers.get(order.provider).complete(order.request)
    except ProviderError as error:
        return AskFailed(order.step_id, error)
    reach("answered")
    return Answered(order.step_id, numbering.settled(response), first_token_ns=time.monotonic_ns() - begun)


class _Answer:
    """One streamed answer on its way into the log."""

    def __init__(self, fence: Fence, order: Ask) -> None:
        self.fence, self.order = fence, order
        self.numbering = Numbering(order)
        self.stream = Stream(fence, order.head, order.last_seq)
        self.repeat = Repeat(order.shown)
        self.begun = time.monotonic_ns()
        self.first_token_ns: int | None = None

    async def take(self, deltas: Sequence[Delta]) -> None:
        """Take what came at once; return when it has committed, so that the next read gets all that came meanwhile."""
        self._check_ours()
        if self.first_token_ns is None:
            self.first_token_ns = time.monotonic_ns() - self.begun
        events = [event for delta in deltas if (event := self.numbering.event(delta)) is not None]
        await self._say(events)
        await writer.written(self.stream)

    async def _say(self, events: Sequence[Event]) -> None:
        while events and not self.repeat.covered:
            event, *events = events
            try:
                writer.add(self.stream, self.repeat.feed(event))
            except Differs:
                await self.start_over()
        writer.add(self.stream, events)

    def _check_ours(self) -> None:
        if self.stream.lost.is_set():
            raise self.stream.error or Lost

    async def start_over(self) -> None:
        """Readers saw another answer: this one goes out from its start under an id of its own."""
        batch, head = await stored(self.fence, lambda: supersede(self.fence, self.order.step_id))
        hub.publish(self.fence.run_id, batch)
        self.stream = Stream(self.fence, head, batch.last)
        said, self.repeat = self.repeat.events, Repeat(())
        writer.add(self.stream, said)

    async def streamed(self) -> Streamed:
        rest: list[Event] = await writer.take(self.stream)
        self._check_ours()
        head: StepHead = self.stream.head
        return Streamed(self.stream.written, rest, head, self.stream.last)


async def _ask_streamed(answer: _Answer) -> Answered | AskFailed:
    order = answer.order
    writer.open_streams += 1
    try:
        response = await _read(answer, providers.get(order.provider).stream(order.request))
        reach("answered")
        if not answer.repeat.covered:
            await answer.start_over()
        return Answered(
            order.step_id,
            answer.numbering.settled(response),
            await answer.streamed(),
            frozenset(answer.numbering.kinds),
            frozenset(answer.numbering.streamed_calls),
            answer.first_token_ns,
        )
    except ProviderError as error:
        return AskFailed(order.step_id, error, await answer.streamed())
    finally:
        writer.open_streams -= 1


async def _read(answer: _Answer, items: providers.Answer) -> ModelResponse:
    async with aclosing(items):  # whoever stops reading hangs up at once
        async for item in items:
            if isinstance(item, ModelResponse):
                return item
            await answer.take(item)
    raise ProviderError("invalid_response", "The model's answer ended without an end", started=True)
