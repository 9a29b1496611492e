"""One way to call a vendor: shared clients, our own retries, the bytes of a stream fed to an assembly."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings

from agents.providers.base import Answer, Delta, ModelResponse, ProviderError
from agents.providers.failures import translated, unusable
from agents.providers.lines import Events, load_object
from lettaweb.lib.patience import Patience

if TYPE_CHECKING:
    from httpx2 import Response

MAX_WAIT = 60.0  # seconds; a vendor that wants more waiting is told to the operator instead
LONGEST_SILENCE = 600.0  # seconds
AFTER_STOP = 5.0  # seconds to wait for usage once the vendor said why it stopped
MAX_ADAPTIONS = 5  # refusals of one request to learn from
AFTER_END = 0.25  # seconds to read on after the last event, so that the connection can be used again

T = TypeVar("T")
TraitsT = TypeVar("TraitsT", bound=Hashable)


# --- clients --------------------------------------------------------------------------------------


class Closable(Protocol):
    async def close(self) -> None: ...


ClientT = TypeVar("ClientT", bound=Closable)


class Clients(Generic[ClientT]):
    """One shared client per configuration and event loop: a connection pool belongs to its loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, ClientT]] = WeakKeyDictionary()

    def get(self, configuration: Hashable, make: Callable[[], ClientT]) -> ClientT:
        """The running loop's client for ``configuration``, made when there is none."""
        with self._lock:
            for ended in [loop for loop in self._by_loop if loop.is_closed()]:
                del self._by_loop[ended]
            clients = self._by_loop.setdefault(asyncio.get_running_loop(), {})
            if configuration not in clients:
                clients[configuration] = make()
            return clients[configuration]

    async def close(self) -> None:
        """Close the running loop's clients; those of a loop that ended went with it."""
        with self._lock:
            clients = self._by_loop.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.close()


def silence(wanted: float) -> float:
    """The seconds of silence to bear: what the request wants, at most the setting."""
    return min(wanted, float(getattr(settings, "LETTAWEB_PROVIDER_TIMEOUT", 600.0)))


# --- retries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long apart a call is repeated; ``backoff`` in seconds, doubled each time."""

    count: int = 2
    backoff: float = 0.5

    @classmethod
    def configured(cls) -> Self:
        count = int(getattr(settings, "LETTAWEB_PROVIDER_RETRIES", 2))
        return cls(count, float(getattr(settings, "LETTAWEB_PROVIDER_BACKOFF", 0.5)))

    def delay(self, error: ProviderError, done: int) -> float | None:
        """Seconds to wait before the next try after ``done`` repetitions, None to give up."""
        if done >= self.count or not error.retryable:
            return None
        if error.retry_after is not None and error.retry_after > MAX_WAIT:
            return None
        wait = self.backoff * 2.0**done * random.uniform(0.75, 1.25)  # noqa: S311  apart from other callers, no secret
        return max(min(wait, MAX_WAIT), error.retry_after or 0.0)


async def repeated(call: Callable[[], Awaitable[T]]) -> T:
    """The result of ``call``, repeated while the vendor's failure is one that passes."""
    retries, done = Retries.configured(), 0
    while True:
        try:
            return await call()
        except ProviderError as error:
            wait = retries.delay(error, done)
            if wait is None:
                raise
        done += 1
        await asyncio.sleep(wait)


async def repeated_stream(start: Callable[[], Answer]) -> Answer:
    """The answer of ``start``, repeated while nothing of it was passed on; closing it closes the vendor's."""
    retries, done = Retries.configured(), 0
    while True:
        try:
            async with aclosing(start()) as answer:
                async for item in answer:
                    yield item
            return
        except ProviderError as error:
            wait = retries.delay(error, done)
            if wait is None:
                raise
        done += 1
        await asyncio.sleep(wait)


async def adapting(
    traits: TraitsT, ask: Callable[[TraitsT], Awaitable[T]], learn: Callable[[TraitsT, ProviderError], TraitsT | None]
) -> tuple[TraitsT, T]:
    """The result of ``ask`` and the traits that it took: what a refusal teaches goes into the next try, each once."""
    seen = {traits}
    while True:
        try:
            return traits, await ask(traits)
        except ProviderError as error:
            taught = learn(traits, error) if len(seen) <= MAX_ADAPTIONS else None
            if taught is None or taught in seen:
                raise
        seen.add(taught)
        traits = taught


# --- streams --------------------------------------------------------------------------------------


class Assembly(Protocol):
    """Puts the events of one answer together; synchronous, without any input or output of its own.

    ``stopped``: the vendor said why it stopped, only bookkeeping can follow. ``ended``: nothing follows.
    ``started``: a delta was given out.
    """

    stopped: bool
    ended: bool
    started: bool

    def feed(self, event: Mapping[str, Any]) -> Sequence[Delta]: ...

    def finish(self) -> ModelResponse: ...


async def assembled(vendor: str, pieces: AsyncIterator[bytes], assembly: Assembly) -> Answer:
    """The deltas and the response of an event stream. Raises ProviderError; ``translated`` errors pass."""
    events = Events()
    try:
        while not assembly.ended:
            piece = await _next(pieces, assembly)
            deltas, error = _fed(vendor, events, piece, assembly)
            if deltas:
                yield deltas
            if error is not None:
                raise error
            if piece is None:
                break
    except ProviderError as error:
        if not assembly.stopped:
            raise _broken(vendor, error, events, assembly) from None
    if not assembly.stopped:
        raise _cut(vendor, events, assembly)
    if assembly.ended:
        await _drain(pieces)
    yield assembly.finish()


def _fed(
    vendor: str, events: Events, piece: bytes | None, assembly: Assembly
) -> tuple[list[Delta], ProviderError | None]:
    """What ``piece`` (None: the end) says, up to where it fails."""
    deltas: list[Delta] = []
    try:
        for data in events.rest() if piece is None else events.feed(piece):
            event = _event(data)
            if event is None and piece is not None:
                raise unusable(vendor, "the stream holds something that is no JSON object", started=assembly.started)
            deltas += assembly.feed(event or {})
    except ProviderError as error:
        return deltas, error
    return deltas, None


async def _next(pieces: AsyncIterator[bytes], assembly: Assembly) -> bytes | None:
    """The next bytes, None at the end; after the stop the wait is short, usage is not worth more."""
    if not assembly.stopped:
        return await anext(pieces, None)
    try:
        async with asyncio.timeout(AFTER_STOP):
            return await anext(pieces, None)
    except TimeoutError:
        return None


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(AFTER_END):
            async for _ in pieces:
                continue
    except (TimeoutError, ProviderError):
        return


def _event(data: str) -> Mapping[str, Any] | None:
    """The event of this data, None when it is garbled (at the end of a stream: cut off)."""
    return {"done": True} if data.strip() == "[DONE]" else load_object(data)


def _broken(vendor: str, error: ProviderError, events: Events, assembly: Assembly) -> ProviderError:
    """The error of a stream that failed: a lost connection within an answer makes the answer unusable."""
    if error.kind in ("connection", "timeout") and events.seen_event:
        return unusable(vendor, f"{error.message} in the middle of an answer", started=assembly.started, again=True)
    return error


def _cut(vendor: str, events: Events, assembly: Assembly) -> ProviderError:
    if not events.seen_bytes:
        return ProviderError("connection", f"{vendor} closed the connection without an answer")
    if not events.seen_event:
        return unusable(vendor, "the answer is no event stream", started=False)
    return unusable(vendor, "the answer ended before its end", started=assembly.started, again=True)


async def pieces_of(response: Response, vendor: str, secrets: Sequence[str]) -> AsyncGenerator[bytes, None]:
    """The decoded bytes of an open response of httpx2 as they come; failures as ProviderError."""
    with translated(vendor, secrets), Patience(silence(LONGEST_SILENCE)) as patience:
        pieces = response.aiter_bytes()
        # aiohttp's own limit ends with a connection on which came what is no HTTP, and its reader waits on.
        while (piece := await patience.for_(anext(pieces, None))) is not None:
            yield piece
