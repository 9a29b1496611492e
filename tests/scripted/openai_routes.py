"""The routes of api.openai.com that answer at once: chat completions, models."""

from __future__ import annotations

from typing import Any

from tests.scripted.conversation import from_openai
from tests.scripted.exchange import Exchange, parse_json
from tests.scripted.models import OPENAI_LISTED
from tests.scripted.openai_params import check_request
from tests.scripted.openai_wire import OpenAIErrors, completion, frames
from tests.scripted.refusals import Refused
from tests.scripted.world import World

Json = Any

ERRORS = OpenAIErrors()


def check_headers(world: World, headers: dict[str, str]) -> None:
    """Refuse a missing or wrong key. Raises Refused."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        message = "You didn't provide an API key. Send it in an Authorization header using Bearer auth."
        raise Refused(message, status=401)
    if not key.startswith(world.settings.openai_key_prefix):
        raise Refused(f"Incorrect API key provided: {key[:7]}***.", status=401, code="invalid_api_key")


def bearer(headers: dict[str, str]) -> str:
    return headers.get("authorization", "").partition(" ")[2]


async def create_completion(exchange: Exchange) -> None:
    """POST /v1/chat/completions."""
    body = parse_json(exchange.request)
    check_request(body)
    conversation = from_openai(body, bearer(exchange.request.headers))
    answer = exchange.world.script.take(conversation)
    await exchange.answer(
        answer,
        stream=body.get("stream") is True,
        whole=lambda: completion(answer, conversation),
        frames=lambda: frames(answer, conversation),
    )


async def list_models(exchange: Exchange) -> None:
    """GET /v1/models, all at once."""
    await exchange.scripted(lambda: {"object": "list", "data": [model_row(name) for name in OPENAI_LISTED]})


async def retrieve_model(exchange: Exchange) -> None:
    """GET /v1/models/{id}."""
    name = exchange.request.path.rsplit("/", 1)[-1]
    if name not in OPENAI_LISTED:
        raise Refused(f"The model '{name}' does not exist", status=404, param="model", code="model_not_found")
    await exchange.scripted(lambda: model_row(name))


def model_row(name: str) -> dict[str, Json]:
    return {"id": name, "object": "model", "created": OPENAI_LISTED[name], "owned_by": "system"}
