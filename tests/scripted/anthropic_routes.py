"""The routes of api.anthropic.com that answer at once: messages, count_tokens, models."""

from __future__ import annotations

from typing import Any

from tests.scripted.anthropic_params import Rules, check_request, estimated_tokens
from tests.scripted.anthropic_wire import AnthropicErrors, frames, message
from tests.scripted.conversation import from_anthropic
from tests.scripted.exchange import Exchange, parse_json
from tests.scripted.models import ANTHROPIC_LISTED, anthropic_model
from tests.scripted.refusals import Refused, expect
from tests.scripted.world import World

Json = Any

ERRORS = AnthropicErrors()
EFFORTS = ("low", "medium", "high", "max", "xhigh")
VERSIONS = ("2023-06-01", "2026-10-21")


def check_headers(world: World, headers: dict[str, str]) -> None:
    """Refuse a missing or wrong key (x-api-key or a bearer token) and a missing version. Raises Refused."""
    key = api_key(headers)
    if not key:
        raise Refused("x-api-key header is required", status=401, kind="authentication_error")
    if not key.startswith(world.settings.anthropic_key_prefix):
        raise Refused("invalid x-api-key", status=401, kind="authentication_error")
    version = headers.get("anthropic-version", "")
    expect(version, "anthropic-version: header is required")
    expect(version in VERSIONS, f'anthropic-version: "{version}" is not a valid version')


def api_key(headers: dict[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return headers.get("x-api-key", "") or (token if scheme.lower() == "bearer" else "")


def rules(exchange: Exchange) -> Rules:
    """The rules that the request's headers and the settings ask for."""
    headers = exchange.request.headers
    return Rules(
        alternate=exchange.world.settings.alternate,
        sampling=headers.get("anthropic-version") == "2023-06-01",
        beta="anthropic-beta" in headers,
    )


async def create_message(exchange: Exchange) -> None:
    """POST /v1/messages."""
    body = parse_json(exchange.request)
    check_request(body, rules(exchange))
    conversation = from_anthropic(body, api_key(exchange.request.headers))
    answer = exchange.world.script.take(conversation)
    await exchange.answer(
        answer,
        stream=body.get("stream") is True,
        whole=lambda: message(answer, conversation),
        frames=lambda: frames(answer, conversation),
    )


async def count_tokens(exchange: Exchange) -> None:
    """POST /v1/messages/count_tokens."""
    body = parse_json(exchange.request)
    check_request(body, rules(exchange), counting=True)
    await exchange.scripted(lambda: {"input_tokens": estimated_tokens(body)})


async def list_models(exchange: Exchange) -> None:
    """GET /v1/models, newest first, in pages of ``limit`` (20, at most 1000) by after_id or before_id."""
    query = exchange.request.query
    names = sorted(ANTHROPIC_LISTED, key=lambda name: ANTHROPIC_LISTED[name], reverse=True)
    await exchange.scripted(lambda: page([model_info(name) for name in names], query))


async def retrieve_model(exchange: Exchange) -> None:
    """GET /v1/models/{id}."""
    name = exchange.request.path.rsplit("/", 1)[-1]
    if name not in ANTHROPIC_LISTED:
        raise Refused(f"model: {name}", status=404, kind="not_found_error")
    await exchange.scripted(lambda: model_info(name))


def page(rows: list[dict[str, Json]], query: dict[str, str]) -> dict[str, Json]:
    """One page of rows. Raises Refused for a limit outside of 1 to 1000 and for an unknown cursor."""
    limit_text = query.get("limit", "20")
    expect(limit_text.isdigit() and 1 <= int(limit_text) <= 1000, "limit: Input should be between 1 and 1000")
    limit, ids = int(limit_text), [row["id"] for row in rows]
    start, stop = 0, len(rows)
    if cursor := query.get("after_id"):
        expect(cursor in ids, f"after_id: {cursor} not found")
        start = ids.index(cursor) + 1
    if cursor := query.get("before_id"):
        expect(cursor in ids, f"before_id: {cursor} not found")
        stop = ids.index(cursor)
        start = max(start, stop - limit)
    shown = rows[start:stop][:limit]
    more = start > 0 if "before_id" in query else start + limit < stop
    return {
        "data": shown,
        "has_more": more,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
    }


def model_info(name: str) -> dict[str, Json]:
    """A ModelInfo row with what the model can do."""
    model = anthropic_model(name)
    assert model is not None
    yes, no = {"supported": True}, {"supported": False}
    adaptive, budget = model.reasoning == "adaptive", model.reasoning == "budget"
    thinks = yes if model.reasoning != "none" else no
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("claude-", "Claude ").replace("-", " "),
        "created_at": f"{ANTHROPIC_LISTED[name]}T00:00:00Z",
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "lifecycle": "active" if model.version >= (4, 5) else "deprecated",
        "line": next((line for line in ("haiku", "sonnet", "opus") if line in name), None),
        "deprecated_at": None,
        "retires_at": None,
        "capabilities": {
            "batch": yes, "citations": yes, "code_execution": no, "image_input": yes, "pdf_input": yes,
            "structured_outputs": yes if model.version >= (4, 5) else no,
            "context_management": {
                "supported": False, "clear_thinking_20251015": no,
                "clear_tool_uses_20250919": no, "compact_20260112": no,
            },
            "effort": {"supported": adaptive, **dict.fromkeys(EFFORTS, yes if adaptive else no)},
            "server_tools": {"supported": False, "code_execution": no, "web_search": no},
            "thinking": {
                **thinks,
                "types": {
                    "adaptive": yes if adaptive else no, "enabled": yes if budget else no,
                    "disabled": yes, "between_tools": no,
                },
            },
        },
    }  # fmt: skip
