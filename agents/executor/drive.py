"""Drive one run: carry out the loop's orders, act and ask, until it is done or not ours any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from agents import loop, providers
from agents.context import summary_text
from agents.events import Event, Fence, StepHead, hub, writer
from agents.events.writer import Stream
from agents.executor.deltas import Numbering
from agents.executor.repeat import Differs, Repeat
from agents.loop import (
    Act,
    Answered,
    Ask,
    AskFailed,
    CallToRun,
    Done,
    Lost,
    Outcome,
    Ran,
    Streamed,
    Summarize,
    Summarized,
)
from agents.loop.supersede import supersede
from agents.providers.base import Delta, ModelResponse, ProviderError
from lettaweb.lib.db import in_db
from tools import runner


async def drive(fence: Fence) -> None:
    """Run ``fence``'s run to its end. Raises :class:`Lost` when somebody else took or ended it."""
    outcome: Outcome = None
    last = 0 if fence.epoch == 1 else None
    while True:
        advanced = await in_db(loop.advance, fence, outcome, last=last)
        if advanced.batch is not None:
            last = advanced.batch.last
            hub.publish(fence.run_id, advanced.batch)
        match advanced.order:
            case Ask():
                outcome = await ask(fence, advanced.order)
            case Act():
                outcome = await act(fence, advanced.order)
            case Summarize():
                outcome = await summarize(advanced.order)
            case Done() | None:
                return


# --- act -------------------------------------------------------------------------------------------


async def act(fence: Fence, order: Act) -> Ran:
    """Run the claimed calls beside each other; each result is stored as it comes, the last by the loop."""
    tasks = [asyncio.create_task(_run_call(call)) for call in order.calls]
    try:
        for count, done in enumerate(asyncio.as_completed(tasks), start=1):
            ran = await done
            if count == len(tasks):
                return ran
            await in_db(loop.store, fence, ran)
    finally:
        for task in tasks:
            task.cancel()
    raise AssertionError("an act without calls")


async def _run_call(call: CallToRun) -> Ran:
    wanted = runner.sandbox_call(
        call.code,
        call.arguments,
        call_id=call.call_id,
        agent_id=call.agent_id,
        agent_state=call.agent_state,
        secrets=call.secrets,
    )
    return Ran(call.pk, await runner.run(call.code, wanted), call.block_versions)


# --- ask -------------------------------------------------------------------------------------------


async def ask(fence: Fence, order: Ask) -> Answered | AskFailed:
    if not order.stream and not order.shown:
        return await _ask_whole(order)
    return await _ask_streamed(fence, order)


async def _ask_whole(order: Ask) -> Answered | AskFailed:
    numbering, begun = Numbering(order), time.monotonic_ns()
    try:
        response = await providers.get(order.provider).complete(order.request)
    except ProviderError as error:
        return AskFailed(order.step_id, error)
    return Answered(order.step_id, numbering.settled(response), first_token_ns=time.monotonic_ns() - begun)


class _Answer:
    """One streamed answer on its way into the log."""

    def __init__(self, fence: Fence, order: Ask) -> None:
        self.fence, self.order = fence, order
        self.numbering = Numbering(order)
        self.stream = Stream(fence, order.head, order.last_seq)
        self.repeat = Repeat(order.shown)
        self.message = None if not order.shown else order.message
        self.superseded = False
        self.begun = time.monotonic_ns()
        self.first_token_ns: int | None = None

    async def take(self, delta: Delta) -> None:
        if self.stream.lost.is_set():
            raise Lost
        if self.first_token_ns is None:
            self.first_token_ns = time.monotonic_ns() - self.begun
        event = self.numbering.event(delta)
        if event is None:
            return
        try:
            events = self.repeat.feed(event)
        except Differs:
            await self.start_over()
            return
        for new in events:
            writer.add(self.stream, new)

    async def start_over(self) -> None:
        """Readers saw another answer: this one goes out from its start under an id of its own."""
        batch, head = await in_db(supersede, self.fence, self.order.step_id)
        hub.publish(self.fence.run_id, batch)
        self.stream = Stream(self.fence, head, batch.last)
        said, self.repeat = self.repeat.events, Repeat(())
        for event in said:
            writer.add(self.stream, event)

    async def streamed(self) -> Streamed:
        rest: list[Event] = await writer.take(self.stream)
        head: StepHead = self.stream.head
        return Streamed(self.stream.written, rest, head, self.stream.last)


async def _ask_streamed(fence: Fence, order: Ask) -> Answered | AskFailed:
    answer = _Answer(fence, order)
    writer.open_streams += 1
    try:
        response = await _read(answer, providers.get(order.provider).stream(order.request))
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


async def _read(answer: _Answer, items: AsyncIterator[Delta | ModelResponse]) -> ModelResponse:
    async for item in items:
        if isinstance(item, ModelResponse):
            return item
        await answer.take(item)
    raise ProviderError("invalid_response", "The model's answer ended without an end", started=True)


async def summarize(order: Summarize) -> Summarized:
    try:
        response = await providers.get(order.provider).complete(order.request)
    except ProviderError as error:
        return Summarized(order, None, error.message)
    text = summary_text(response, clip_chars=order.clip_chars)
    return Summarized(order, text, "" if text else "The model gave no summary")
