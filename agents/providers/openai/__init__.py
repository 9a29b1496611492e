"""OpenAI and every server that speaks its chat completions; its Batch API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.providers.base import BatchResult, BatchStatus, ModelInfo, ModelRequest, ModelResponse, ProviderError
from agents.providers.calls import repeated
from agents.providers.failures import translated
from agents.providers.ids import own_names
from agents.providers.lines import dump, mapping_of
from agents.providers.openai import batch
from agents.providers.openai.answer import VENDOR, Assembly, read_completion
from agents.providers.openai.traits import Traits, adapted, by_name, info
from agents.providers.openai.wire import streamed, to_wire
from agents.providers.sdk import Account, Sdk
from agents.providers.vendor import Vendor, Wire

MODELS = "/models"
PAGE = 100


def account() -> Account:
    """The account of the settings: a key, a base URL (servers of one's own often want no key), or both."""
    return Account(getattr(settings, "OPENAI_API_KEY", "") or "", getattr(settings, "OPENAI_BASE_URL", "") or "")


class OpenAI(Vendor[Traits]):
    """The provider ``openai``."""

    name = "openai"
    path = "/chat/completions"
    max_batch_requests = 50_000
    max_batch_bytes = 200 * 1024 * 1024

    def __init__(self) -> None:
        super().__init__(Sdk(VENDOR, "openai", "AsyncOpenAI", account))

    def by_name(self, model: str) -> Traits:
        return by_name(model)

    def adapted(self, traits: Traits, error: ProviderError, wire: Mapping[str, Any]) -> Traits | None:
        return adapted(traits, error, wire)

    def kept(self, traits: Traits) -> Traits:
        return replace(traits, images="all")  # an image was refused for itself, not for the model

    def wire(self, request: ModelRequest, traits: Traits, *, stream: bool) -> Wire:
        wire = to_wire(request, traits)
        return streamed(wire, traits) if stream else wire

    def assembly(self, names: Mapping[str, str]) -> Assembly:
        return Assembly(names)

    def read(self, body: Any, names: Mapping[str, str]) -> ModelResponse:
        return read_completion(body, names)

    def describe(self, model: str) -> ModelInfo:
        return info({"id": model}) or ModelInfo(model)

    async def models(self) -> Sequence[ModelInfo]:
        page = await repeated(lambda: self.sdk.json("get", MODELS))
        entries = page.get("data")
        found = [info(mapping_of(entry)) for entry in (entries if isinstance(entries, list) else [])]
        return [model for model in found if model is not None]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    # --- batches

    def batch_line(self, custom_id: str, request: ModelRequest) -> bytes:
        body = to_wire(request, self.traits(request.model))
        return dump({"custom_id": custom_id, "method": "POST", "url": batch.ENDPOINT, "body": body})

    async def submit_batch(self, path: str, *, key: str, count: int) -> BatchStatus:
        client = await self.sdk.client()
        with translated(VENDOR, account().secrets):
            uploaded = await client.files.create(file=Path(path), purpose="batch")
        return batch.status(await self.sdk.json("post", batch.PATH, body=dump(batch.wish(uploaded.id, key))))

    async def find_batches(self, *, since: float, key: str) -> Sequence[BatchStatus]:
        found: list[BatchStatus] = []
        async with aclosing(self.sdk.entries(batch.PATH, limit=PAGE, cursor="after")) as entries:
            async for entry in entries:
                if batch.created(entry) < since - batch.SKEW:
                    break  # newest first: the rest is older
                if batch.is_of(entry, key):
                    found.append(batch.status(entry))
        return found

    async def poll_batch(self, batch_id: str) -> BatchStatus:
        return batch.status(await repeated(lambda: self.sdk.json("get", batch.path_of(batch_id))))

    async def cancel_batch(self, batch_id: str) -> BatchStatus:
        return await self.cancelled(batch.path_of(batch_id), batch.status)

    async def batch_results(self, batch_id: str) -> AsyncGenerator[bytes, None]:
        for file_id in batch.result_files((await self.poll_batch(batch_id)).raw):
            async with aclosing(self.sdk.lines(batch.file_path(file_id))) as lines:
                async for line in lines:
                    yield line

    def read_result(self, line: bytes, tools: Sequence[str] = ()) -> BatchResult | None:
        return batch.read_result(line, own_names(tools))
