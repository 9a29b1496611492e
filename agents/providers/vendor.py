"""What the vendors with an SDK have in common: one call path for streamed and whole answers, batches beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agents.providers.base import Answer, BatchStatus, ModelRequest, ModelResponse, ProviderError
from agents.providers.calls import Assembly, adapting, assembled, repeated, repeated_stream
from agents.providers.ids import own_names
from agents.providers.lines import dump
from agents.providers.sdk import Sdk, request_id

if TYPE_CHECKING:
    from httpx2 import Response

TraitsT = TypeVar("TraitsT", bound=Hashable)  # what a model takes: a frozen dataclass
Wire = dict[str, Any]


class Vendor(ABC, Generic[TraitsT]):
    """A provider that answers through an SDK. A subclass says what is the vendor's own."""

    name: str
    path: str

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self._known: dict[tuple[str, str], TraitsT] = {}

    def configured(self) -> bool:
        account = self.sdk.account
        return bool(account.key or account.base_url)

    def warm(self) -> None:
        """Import the SDK; blocks for seconds, for a thread."""
        self.sdk.warm()

    def forget(self) -> None:
        """Drop what was learned of the vendor's models."""
        self._known.clear()

    async def close(self) -> None:
        await self.sdk.close()

    # --- the vendor's own

    @abstractmethod
    def by_name(self, model: str) -> TraitsT:
        """The traits of a model of which nothing else is known."""

    @abstractmethod
    def adapted(self, traits: TraitsT, error: ProviderError, wire: Mapping[str, Any]) -> TraitsT | None:
        """The traits that a refusal of ``wire`` teaches, None when it is about something else."""

    @abstractmethod
    def wire(self, request: ModelRequest, traits: TraitsT, *, stream: bool) -> Wire:
        """The body of a call."""

    @abstractmethod
    def assembly(self, names: Mapping[str, str]) -> Assembly:
        """A new assembly of a stream; ``names`` gives tools their own names back."""

    @abstractmethod
    def read(self, body: Any, names: Mapping[str, str]) -> ModelResponse:
        """The response of a whole answer. Raises ProviderError."""

    def headers(self, wire: Mapping[str, Any]) -> Mapping[str, str]:
        """Headers of a call beside the SDK's."""
        return {}

    def kept(self, traits: TraitsT) -> TraitsT:
        """What of the traits that worked holds for later requests, too."""
        return traits

    # --- answers

    def stream(self, request: ModelRequest) -> Answer:
        return repeated_stream(lambda: self._streamed(request))

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return await repeated(lambda: self._completed(request))

    async def _streamed(self, request: ModelRequest) -> Answer:
        whole: ModelResponse | None = None
        async with self._asked(request, stream=True) as response:
            assembly = self.assembly(_own_names(request))
            async with aclosing(assembled(self.sdk.vendor, self.sdk.pieces(response), assembly)) as answer:
                async for item in answer:
                    if isinstance(item, ModelResponse):
                        whole = _numbered(item, response)
                    else:
                        yield item
        if whole is not None:  # after the connection went back: a reader may stop here and never come again
            yield whole

    async def _completed(self, request: ModelRequest) -> ModelResponse:
        async with self._asked(request, stream=False) as response:
            return _numbered(self.read(await self.sdk.read(response), _own_names(request)), response)

    @asynccontextmanager
    async def _asked(self, request: ModelRequest, *, stream: bool) -> AsyncGenerator[Response, None]:
        """The open response of a call; what is refused is left out or changed, once and for later calls."""
        async with AsyncExitStack() as stack:

            async def ask(traits: TraitsT) -> Response:
                wire = self.wire(request, traits, stream=stream)
                opening = self.sdk.opened(
                    "post", self.path, body=dump(wire), timeout=request.timeout, headers=self.headers(wire)
                )
                return await stack.enter_async_context(opening)

            def learn(traits: TraitsT, error: ProviderError) -> TraitsT | None:
                return self.adapted(traits, error, self.wire(request, traits, stream=stream))

            traits, response = await adapting(self.traits(request.model), ask, learn)
            self.remember(request.model, self.kept(traits))
            yield response

    def traits(self, model: str) -> TraitsT:
        """What is known of a model by now."""
        return self._known.get((self.sdk.account.base_url, model)) or self.by_name(model)

    def remember(self, model: str, traits: TraitsT) -> None:
        self._known[self.sdk.account.base_url, model] = traits

    # --- batches

    async def cancelled(self, path: str, status: Callable[[Mapping[str, Any]], BatchStatus]) -> BatchStatus:
        """The state of the batch at ``path`` once it was told to stop; of one that had ended, its end."""
        try:
            return status(await repeated(lambda: self.sdk.json("post", f"{path}/cancel", body=b"{}")))
        except ProviderError as error:
            if error.status not in (400, 409):
                raise
        return status(await repeated(lambda: self.sdk.json("get", path)))


def _own_names(request: ModelRequest) -> Mapping[str, str]:
    return own_names(tool.name for tool in request.tools)


def _numbered(response: ModelResponse, reply: Response) -> ModelResponse:
    """The response with the id that the vendor's support asks for."""
    return replace(response, request_id=request_id(reply) or response.request_id)
