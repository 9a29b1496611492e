"""Sends an answer as the script wants it: late, slowly, in pieces, cut off, held back, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.scripted.answers import Answer
from tests.scripted.http import Reply
from tests.scripted.log import Log, Received
from tests.scripted.refusals import Refused

Json = Any
HTML = b"<!doctype html><html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>"


class Vendor(Protocol):
    """How a vendor writes errors."""

    def error_body(self, error: Refused) -> Json: ...

    def error_frame(self, error: Refused) -> bytes: ...

    def fault(self, answer: Answer) -> Refused: ...


@dataclass(slots=True)
class Holds:
    """Named gates that answers wait at: which are open, and which somebody waits at."""

    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())


@dataclass(slots=True)
class Delivery:
    """One answer on its way."""

    answer: Answer
    reply: Reply
    entry: Received
    vendor: Vendor
    holds: Holds
    log: Log

    async def refuse(self, error: Refused) -> None:
        """Answer with the vendor's error."""
        headers = {} if self.answer.retry_after is None else {"retry-after": f"{self.answer.retry_after:g}"}
        await self.reply.json(error.status, self.vendor.error_body(error), {**headers, **self.answer.headers})

    async def before(self, *, stream: bool) -> bool:
        """What happens before or instead of the answer proper; False when that was all."""
        answer = self.answer
        if answer.hang:
            await self.until_gone()
            self.cut()
            return False
        if answer.first_byte:
            await self.pause(answer.first_byte / 1000)
        if answer.cut_at_byte == 0 or answer.cut_at_event == 0:
            self.cut()
            return False
        if answer.fault and answer.error_at is None:
            await self.fail()
            return False
        if answer.raw is not None:
            await self.send_raw(answer.raw, "text/event-stream" if stream else "application/json")
            return False
        return True

    async def lose(self) -> None:
        """Give no answer to a request that was carried out: hang up, or let the client wait."""
        if self.answer.hang:
            await self.until_gone()
        self.cut()

    async def fail(self) -> None:
        kind = self.answer.fault
        if kind == "invalid_json":
            await self.reply.whole(200, b'{"id": "msg_1", "content": [', "application/json")
        elif kind == "html":
            await self.reply.whole(200, HTML, "text/html")
        elif kind == "empty_body":
            await self.reply.whole(200, b"", "application/json")
        else:
            await self.refuse(self.vendor.fault(self.answer))

    async def send_raw(self, body: bytes, content_type: str) -> None:
        answer = self.answer
        self.reply.start(answer.status, answer.content_type or content_type, answer.headers)
        size = answer.pace or max(len(body), 1)
        for start in range(0, len(body), size):
            if self.reply.gone or (answer.cut_at_byte is not None and start >= answer.cut_at_byte):
                self.cut()
                return
            await self.reply.chunk(body[start : start + size])
            if answer.pace:
                await asyncio.sleep(answer.delay / 1000)
        await self.reply.end()

    async def send_json(self, body: Json, events: int) -> None:
        """The whole answer at once, after as much time as ``events`` stream events would take."""
        answer = self.answer
        await self.wait_at(events, last=True)
        if answer.delay:
            await self.pause(answer.delay * events / 1000)
        if answer.error_at is not None:
            await self.refuse(self.vendor.fault(answer))
            return
        data = json.dumps(body).encode()
        if answer.cut_at_byte is None and answer.cut_at_event is None:
            await self.reply.whole(200, data, "application/json", answer.headers)
            return
        self.reply.start(200, "application/json", answer.headers)
        await self.reply.chunk(data[: answer.cut_at_byte or len(data) // 2])
        self.cut()

    async def send_events(self, frames: Sequence[bytes]) -> None:
        """An event stream; at once when the answer asks for nothing else."""
        answer = self.answer
        frames = self.cut_frames(frames)
        self.reply.start(200, "text/event-stream; charset=utf-8", answer.headers)
        whole = answer.cut_at_event is None and answer.cut_at_byte is None
        if answer.delay or answer.hold:
            await self.pace(frames, whole=whole)
        else:
            self.entry.events = len(frames)
            await self.reply.chunk(b"".join(frames), last=whole)
        if self.entry.outcome != "finished":
            self.cut()

    def cut_frames(self, frames: Sequence[bytes]) -> Sequence[bytes]:
        """The frames up to the cut or the error that the script wants."""
        answer = self.answer
        if answer.error_at is not None:
            return [*frames[: answer.error_at], self.vendor.error_frame(self.vendor.fault(answer))]
        if answer.cut_at_event is not None:
            return frames[: answer.cut_at_event]
        if answer.cut_at_byte is None:
            return frames
        kept, left = [], answer.cut_at_byte
        for frame in frames:
            kept.append(frame[:left])
            left -= len(kept[-1])
        return kept

    async def pace(self, frames: Sequence[bytes], *, whole: bool) -> None:
        clock = asyncio.get_running_loop().time
        start, step = clock(), self.answer.delay / 1000
        for place, frame in enumerate(frames):
            await self.wait_at(place)
            late = start + place * step - clock()
            if late > 0:
                await asyncio.sleep(late)
            if self.reply.gone:
                return
            self.entry.events += 1
            await self.reply.chunk(frame, last=whole and place == len(frames) - 1)

    async def wait_at(self, place: int, *, last: bool = False) -> None:
        """Wait at the answer's gate when it stands before this event."""
        name = self.answer.hold
        if not name or (not last and place != self.answer.hold_at):
            return
        self.holds.waiting.add(name)
        self.log.touch()
        gate = asyncio.ensure_future(self.holds.gate(name).wait())
        gone = asyncio.ensure_future(self.until_gone())
        try:
            await asyncio.wait({gate, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gate.cancel()
            gone.cancel()
            self.holds.waiting.discard(name)

    async def pause(self, seconds: float) -> None:
        """Sleep, or less when the client hangs up."""
        try:
            await asyncio.wait_for(self.until_gone(), seconds)
        except TimeoutError:
            return

    async def until_gone(self) -> None:
        """Wait for the client to hang up."""
        while not self.reply.gone:
            await self.reply.reader.read(1)

    def cut(self) -> None:
        self.entry.outcome = "gone" if self.reply.gone else "cut"
        self.reply.cut()
