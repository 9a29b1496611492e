"""Anthropic: the Messages API and Message Batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents.providers.anthropic import batch
from agents.providers.anthropic.answer import VENDOR, Assembly, read_message
from agents.providers.anthropic.traits import Traits, adapted, by_list, by_name, info
from agents.providers.anthropic.wire import to_wire
from agents.providers.base import BatchResult, BatchStatus, ModelInfo, ModelRequest, ModelResponse, ProviderError
from agents.providers.calls import repeated
from agents.providers.ids import own_names
from agents.providers.lines import count_of, dump, text_of
from agents.providers.sdk import Account, Sdk
from agents.providers.vendor import Vendor, Wire

MODELS = "/v1/models"
PAGE = 1000
COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")
SAMPLING_VERSION = "2023-06-01"
BINDING_BETA = "thinking-binding-controls-2026-08-01"


def account() -> Account:
    """The account of the settings; a base URL alone is none, for the vendor always wants a key."""
    key = getattr(settings, "ANTHROPIC_API_KEY", "") or ""
    return Account(key, (getattr(settings, "ANTHROPIC_BASE_URL", "") or "") if key else "")


def extra_headers(*, sampled: bool, bound: bool) -> Mapping[str, str]:
    """Headers that fields of a body need: the API version that the SDK asks for takes no sampling parameters from any
    model, the one before it does; what becomes of stored thinking is a beta."""
    version = {"anthropic-version": SAMPLING_VERSION} if sampled else {}
    return version | ({"anthropic-beta": BINDING_BETA} if bound else {})


class Anthropic(Vendor[Traits]):
    """The provider ``anthropic``."""

    name = "anthropic"
    path = "/v1/messages"
    max_batch_requests = 100_000
    max_batch_bytes = 256 * 1024 * 1024

    def __init__(self) -> None:
        super().__init__(Sdk(VENDOR, "anthropic", "AsyncAnthropic", account))

    def by_name(self, model: str) -> Traits:
        return by_name(model)

    def adapted(self, traits: Traits, error: ProviderError, wire: Mapping[str, Any]) -> Traits | None:
        return adapted(traits, error, wire)

    def kept(self, traits: Traits) -> Traits:
        # Stored thinking and images were refused for themselves, not for the model.
        return replace(traits, replay=True, images="all")

    def wire(self, request: ModelRequest, traits: Traits, *, stream: bool) -> Wire:
        return to_wire(request, traits) | ({"stream": True} if stream else {})

    def headers(self, wire: Mapping[str, Any]) -> Mapping[str, str]:
        return extra_headers(sampled="temperature" in wire, bound="block_binding" in wire.get("thinking", {}))

    def assembly(self, names: Mapping[str, str]) -> Assembly:
        return Assembly(names)

    def read(self, body: Any, names: Mapping[str, str]) -> ModelResponse:
        return read_message(body, names)

    def describe(self, model: str) -> ModelInfo:
        return info({"id": model})

    async def models(self) -> Sequence[ModelInfo]:
        found: list[ModelInfo] = []
        async for entry in self.sdk.entries(MODELS, limit=PAGE, cursor="after_id"):
            if name := text_of(entry.get("id")):
                self._known.setdefault((account().base_url, name), by_list(name, entry))
                found.append(info(entry))
        return found

    async def count_tokens(self, request: ModelRequest) -> int | None:
        wire = to_wire(request, self.traits(request.model))
        body = dump({name: wire[name] for name in COUNTED if name in wire})
        path, headers = f"{self.path}/count_tokens", self.headers(wire)
        counted = await repeated(lambda: self.sdk.json("post", path, body=body, headers=headers))
        return count_of(counted.get("input_tokens"))

    # --- batches

    def batch_line(self, custom_id: str, request: ModelRequest) -> bytes:
        return dump({"custom_id": custom_id, "params": to_wire(request, self.traits(request.model))})

    async def submit_batch(self, path: str, *, key: str, count: int) -> BatchStatus:
        body = await batch.body_of(path)
        headers = extra_headers(sampled=b'"temperature"' in body, bound=b'"block_binding"' in body)
        return batch.status(await self.sdk.json("post", batch.PATH, body=body, timeout=600.0, headers=headers))

    async def find_batches(self, *, since: float, key: str) -> Sequence[BatchStatus]:
        found: list[BatchStatus] = []
        async with aclosing(self.sdk.entries(batch.PATH, limit=PAGE, cursor="after_id")) as entries:
            async for entry in entries:
                if batch.created(entry) < since - batch.SKEW:
                    break  # newest first: the rest is older
                found.append(batch.status(entry))
        return found

    async def poll_batch(self, batch_id: str) -> BatchStatus:
        return batch.status(await repeated(lambda: self.sdk.json("get", batch.path_of(batch_id))))

    async def cancel_batch(self, batch_id: str) -> BatchStatus:
        return await self.cancelled(batch.path_of(batch_id), batch.status)

    def batch_results(self, batch_id: str) -> AsyncIterator[bytes]:
        return self.sdk.lines(f"{batch.path_of(batch_id)}/results")

    def read_result(self, line: bytes, tools: Sequence[str] = ()) -> BatchResult | None:
        return batch.read_result(line, own_names(tools))
