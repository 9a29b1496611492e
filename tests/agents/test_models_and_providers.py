"""Models and providers on offer: one object for both generations of clients."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from agents import providers

pytestmark = pytest.mark.django_db

LLM_CONFIG = {
    "model",
    "model_endpoint_type",
    "context_window",
    "handle",
    "temperature",
    "max_tokens",
    "enable_reasoner",
}
MODEL = {"name", "provider_type", "provider_name", "model_type", "display_name", "max_context_window"}
EMBEDDING = {"name", "display_name", "provider_type", "provider_name", "embedding_dim", "embedding_endpoint_type"}


@pytest.fixture(autouse=True)
def _no_keys(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = settings.OPENAI_API_KEY = ""
    providers.forget()


def get(path: str, **params: str) -> Any:
    answer = APIClient().get(f"/v1/{path}", params)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_it_lists_models_that_are_both_a_model_and_an_llm_config() -> None:
    models = get("models/")
    assert models == get("models")
    assert models
    for model in models:
        assert model.keys() >= LLM_CONFIG | MODEL
        assert model["handle"] == f"{model['provider_name']}/{model['model']}"
        assert model["context_window"] == model["max_context_window"]
    assert {model["provider_name"] for model in models} == {"demo"}
    kinds = {model[name] for model in models for name in ("provider_type", "model_endpoint_type")}
    assert kinds == {"openai"}, "clients know no other words"


@pytest.mark.parametrize("name", ["provider_name", "provider_type"])
def test_it_lists_the_models_of_a_provider(name: str) -> None:
    assert get("models/", **{name: "demo"}) == get("models/")
    assert get("models/", **{name: "nobody"}) == []
    assert get("models/", provider_category="byok") == []


def test_it_lists_embedding_handles() -> None:
    for embedding in get("models/embedding"):
        assert embedding.keys() >= EMBEDDING
        assert embedding["model_type"] == "embedding"


def test_it_says_which_provider_is_configured(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = "sk-secret"
    shown = {provider["name"]: provider for provider in get("providers/")}
    assert {name: provider["configured"] for name, provider in shown.items()} == {
        "anthropic": True,
        "openai": False,
        "demo": True,
    }
    assert "sk-secret" not in str(shown)


@pytest.mark.parametrize("path", ["models/embeddings", "voice-beta/x", "templates"])
def test_it_has_no_stub_for_what_is_not_built(path: str) -> None:
    answer = APIClient().get(f"/v1/{path}")
    assert answer.status_code == 404
    assert answer.json() == {"detail": "Not Found"}
