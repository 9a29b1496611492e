"""A vendor's real SDK behind a narrow door: bytes of JSON in, JSON values or an open response out.

The SDK brings the connection pool, the headers and the errors; its own retries are off (ours are in ``calls``)
and its model classes are not used, for they cost more than the answer itself. Of its HTTP clients we take the one
over aiohttp, which gives in one read all that has come; the other one gives a token at a time. The SDKs take
seconds to import: nothing here imports one before the first call or ``warm``.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agents.providers.base import ProviderError
from agents.providers.calls import LONGEST_SILENCE, Clients, Closable, pieces_of, repeated, silence
from agents.providers.failures import translated, unusable
from agents.providers.lines import BOM, Lines, load_object, mapping_of, text_of

if TYPE_CHECKING:
    from httpx2 import Response

CONNECT = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Account:
    """What a vendor's client needs. ``base_url`` "" is the vendor's own; an account without both is none."""

    key: str
    base_url: str

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,) if self.key else ()


class Sdk:
    """The SDK ``module`` of ``vendor``; ``account`` reads the settings, ``client_class`` is the asynchronous client."""

    def __init__(self, vendor: str, module: str, client_class: str, account: Callable[[], Account]) -> None:
        self.vendor = vendor
        self._module = module
        self._client_class = client_class
        self._account = account
        self._clients: Clients[Closable] = Clients()
        self._imported = False

    @property
    def account(self) -> Account:
        return self._account()

    def warm(self) -> None:
        """Import the SDK; blocks for seconds, for a thread."""
        for name in (self._module, "aiohttp"):
            importlib.import_module(name)
        self._imported = True

    async def client(self) -> Any:
        """The shared client of the running loop. Raises ProviderError when the settings name no account."""
        account = self.account
        if not (account.key or account.base_url):
            raise ProviderError("not_configured", f"{self.vendor} is not configured on this server")
        if not self._imported:  # a module that is only half imported is in sys.modules, too
            await asyncio.to_thread(self.warm)

        def make() -> Closable:
            sdk = sys.modules[self._module]
            client: Closable = getattr(sdk, self._client_class)(
                api_key=account.key or "none",
                base_url=account.base_url or None,
                max_retries=0,
                timeout=silence(LONGEST_SILENCE),
                http_client=sdk.DefaultAioHttpClient(),
            )
            return client

        with translated(self.vendor, account.secrets):
            return self._clients.get(account, make)

    async def json(
        self, method: str, path: str, *, body: bytes | None = None, timeout: float = 60.0,
        params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:  # fmt: skip
        """The JSON object that the vendor answers. Raises ProviderError, also when it answers anything else."""
        async with self.opened(method, path, body=body, timeout=timeout, params=params, headers=headers) as response:
            return await self.read(response)

    async def read(self, response: Response) -> Mapping[str, Any]:
        """The JSON object of an open response's body. Raises ProviderError."""
        content = [piece async for piece in self.pieces(response)]
        value = load_object(b"".join(content).decode("utf-8", "replace"))
        if value is None:
            raise unusable(self.vendor, "the answer is no JSON object", started=False)
        return value

    def pieces(self, response: Response) -> AsyncGenerator[bytes, None]:
        """The bytes of an open response's body as they come; failures as ProviderError."""
        return pieces_of(response, self.vendor, self.account.secrets)

    async def entries(self, path: str, *, limit: int, cursor: str) -> AsyncGenerator[Mapping[str, Any], None]:
        """The entries of a list, page by page; ``cursor`` is the parameter that takes the last entry's id."""
        params: dict[str, Any] = {"limit": limit}
        while True:
            page = await repeated(partial(self.json, "get", path, params=params))
            found = page.get("data")
            entries = [mapping_of(entry) for entry in found] if isinstance(found, list) else []
            for entry in entries:
                yield entry
            last = text_of(entries[-1].get("id")) if entries else ""
            if page.get("has_more") is not True or not last or last == params.get(cursor):
                return
            params = {**params, cursor: last}

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of a result file. Raises ProviderError, one that passes when a web page came in its place."""
        lines, begun = Lines(), False
        async with self.opened("get", path, timeout=600.0) as response, aclosing(self.pieces(response)) as pieces:
            async for piece in pieces:
                for line in lines.feed(piece):
                    begun = begun or self._is_result(line)
                    yield line
            for line in lines.rest():
                if begun or self._is_result(line):
                    yield line

    def _is_result(self, line: bytes) -> bool:
        """False for a blank line. Raises ProviderError for the beginning of a web page."""
        begin = line.removeprefix(BOM).lstrip()
        if begin.startswith(b"<"):
            raise ProviderError("server", f"{self.vendor} answered a web page instead of results")
        return bool(begin)

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, *, body: bytes | None = None, timeout: float = 60.0,
        params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Response, None]:  # fmt: skip
        """The open response (httpx2) of a successful call, its body unread; closed at the end, also by cancellation."""
        client = await self.client()
        import httpx2

        stream = sys.modules[self._module].AsyncStream[Any]
        wait = silence(timeout)
        limits = httpx2.Timeout(wait, connect=min(CONNECT, wait))
        options: dict[str, Any] = {"timeout": limits, "params": params or {}, "headers": headers or {}}
        content = {} if method == "get" else {"content": body}
        with translated(self.vendor, self.account.secrets):
            response: Response = await getattr(client, method)(
                path, cast_to=httpx2.Response, options=options, stream=True, stream_cls=stream, **content
            )
        try:
            yield response
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._clients.close()


def request_id(response: Response) -> str:
    """The vendor's id of this call, for its support; "" when it gave none."""
    headers = response.headers
    return headers.get("request-id") or headers.get("x-request-id") or ""
