"""Finding providers, listing models, starting and ending."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from agents import providers
from tests.agents.providers.asking import GPT, PLAIN, complete
from tests.scripted.answers import fault, hang, raw
from tests.scripted.server import ScriptedProvider


def test_it_finds_providers_by_name_and_handle() -> None:
    assert providers.names() == ("anthropic", "openai", "demo")
    assert providers.get("demo").name == "demo"
    provider, model = providers.for_handle("openai/deepseek/r1")
    assert (provider.name, model) == ("openai", "deepseek/r1")


def test_it_knows_who_has_batches() -> None:
    assert [name for name in providers.names() if providers.batch_provider(name)] == ["anthropic", "openai"]


def test_it_knows_no_other_provider() -> None:
    with pytest.raises(providers.UnknownProvider):
        providers.get("nobody")
    with pytest.raises(KeyError):
        providers.for_handle("nobody/x")


@pytest.mark.parametrize("handle", ["", "gpt-4o", "/x", "openai/", "/"])
def test_it_refuses_what_is_no_handle(handle: str) -> None:
    with pytest.raises(ValueError):
        providers.for_handle(handle)


def test_it_imports_no_sdk() -> None:
    code = (
        "import sys; from django.conf import settings; settings.configure(); import agents.providers;"
        "sys.exit(any(name in sys.modules for name in ('anthropic', 'openai', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_it_lists_what_the_vendors_list(vendors: ScriptedProvider) -> None:
    handles = [model.handle for model in await providers.all_models()]
    assert {"anthropic/claude-opus-4-7", "openai/gpt-4o", "demo/demo"} <= set(handles)
    assert "openai/text-embedding-3-small" not in handles
    assert [model.handle for model in providers.known_models()] == handles
    asked = len(vendors.requests)
    await providers.all_models()
    assert len(vendors.requests) == asked, "the list is cached"
    await providers.all_models(refresh=True)
    assert len(vendors.requests) > asked


@pytest.mark.parametrize("reply", [fault("server", times=9), raw(b"<html>", content_type="text/html"), raw(b"{}")])
async def test_it_falls_back_to_a_short_list(vendors: ScriptedProvider, reply: Any) -> None:
    vendors.script_route("GET /v1/models*", reply)
    vendors.script_route("GET /v1/models*", reply)
    handles = [model.handle for model in await providers.all_models()]
    assert any(handle.startswith("anthropic/") for handle in handles)
    assert any(handle.startswith("openai/") for handle in handles)


async def test_it_does_not_wait_long_for_a_list(vendors: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "PATIENCE", 0.1)
    vendors.script_route("GET /v1/models*", hang(), hang())
    assert await providers.all_models()


async def test_it_lists_configured_providers_only(vendors: ScriptedProvider, settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = settings.OPENAI_API_KEY = ""
    assert {model.provider for model in await providers.all_models()} == {"openai", "demo"}, "a base URL is enough"
    settings.OPENAI_BASE_URL = ""
    assert [model.handle for model in await providers.all_models()] == ["demo/demo"]


async def test_it_describes_models_on_no_list(vendors: ScriptedProvider) -> None:
    await providers.all_models()
    assert providers.model_info("anthropic/claude-opus-4-7").context_window == 1_000_000
    assert providers.model_info("anthropic/claude-opus-9").reasoning
    assert not providers.model_info("anthropic/claude-3-haiku").reasoning
    assert providers.model_info("openai/gpt-4.1-2030").context_window == 1_047_576
    assert providers.model_info("demo/other").name == "other"


async def test_it_needs_no_key_where_a_base_url_is_set(vendors: ScriptedProvider, settings: Any) -> None:
    settings.OPENAI_API_KEY = ""
    vendors.settings.openai_key_prefix = "none"
    assert (await complete(GPT, "hi")).parts


async def test_it_keeps_a_client_for_each_event_loop(vendors: ScriptedProvider) -> None:
    await complete(PLAIN, "hi")
    failures: list[BaseException] = []

    async def elsewhere() -> None:
        await complete(PLAIN, "hi")
        await complete(GPT, "hi")
        await providers.close_all()

    def run() -> None:
        try:
            asyncio.run(elsewhere())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert failures == []
    await complete(PLAIN, "hi")


async def test_it_takes_a_new_client_when_the_settings_change(vendors: ScriptedProvider, settings: Any) -> None:
    await complete(PLAIN, "hi")
    settings.ANTHROPIC_API_KEY = "sk-ant-test-other"
    await complete(PLAIN, "hi")
    keys = [sent.headers["authorization"] for sent in vendors.generations]
    assert keys == ["Bearer sk-ant-test-key", "Bearer sk-ant-test-other"]


async def test_it_warms_up_what_is_configured(vendors: ScriptedProvider) -> None:
    await asyncio.to_thread(providers.warm)
    assert {"anthropic", "openai"} <= set(sys.modules)
