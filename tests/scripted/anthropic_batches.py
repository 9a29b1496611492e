"""Message Batches: created at once, answered by the script when the test or the polls end them."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from tests.scripted.answers import Answer, FaultKind
from tests.scripted.anthropic_params import Rules, check_request
from tests.scripted.anthropic_routes import ERRORS, api_key, page, rules
from tests.scripted.anthropic_wire import message, new_id
from tests.scripted.batch_rows import Batch, BatchRequest, Ending, with_ids
from tests.scripted.conversation import from_anthropic
from tests.scripted.exchange import Exchange, parse_json
from tests.scripted.refusals import Refused, expect
from tests.scripted.world import World

Json = Any

CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DAY = 86_400
OUTCOMES = ("succeeded", "errored", "canceled", "expired")


async def create(exchange: Exchange) -> None:
    """POST /v1/messages/batches."""
    body = parse_json(exchange.request)
    check_create(body, exchange.world)
    found = rules(exchange)
    requests = [checked(row, found) for row in body["requests"]]
    exchange.entry.items = [f"{row.custom_id}: {row.refusal}" for row in requests if row.refusal]

    def act() -> Json:
        key = api_key(exchange.request.headers)
        batch = Batch(new_id("msgbatch"), key, "in_progress", requests, time.time())
        exchange.world.message_batches[batch.id] = batch
        return shown(batch, exchange)

    await exchange.scripted(act)


def check_create(body: Json, world: World) -> None:
    """Refuse what the API refuses when a batch is created; its requests are looked at later. Raises Refused."""
    expect(isinstance(body, dict), "Input should be a valid dictionary")
    for name in body:
        expect(name == "requests", f"{name}: Extra inputs are not permitted")
    requests = body.get("requests")
    expect(isinstance(requests, list), "requests: Field required")
    expect(requests, "requests: List should have at least 1 item after validation, not 0")
    limit = world.settings.batch_requests
    expect(
        len(requests) <= limit,
        f"requests: List should have at most {limit} items after validation, not {len(requests)}",
    )
    for place, row in enumerate(requests):
        where = f"requests.{place}"
        expect(
            isinstance(row, dict) and row.keys() == {"custom_id", "params"},
            f"{where}: custom_id and params are required",
        )
        valid = isinstance(row["custom_id"], str) and CUSTOM_ID.fullmatch(row["custom_id"])
        expect(valid, f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        expect(isinstance(row["params"], dict), f"{where}.params: Input should be a valid dictionary")
    counts = Counter(row["custom_id"] for row in requests)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    expect(repeated is None, f"requests: custom_id must be unique, found {repeated!r} more than once")


def checked(row: Mapping[str, Json], found: Rules) -> BatchRequest:
    """The request with the refusal that it will meet at the end."""
    request = BatchRequest(row["custom_id"], row["params"])
    try:
        expect(not row["params"].get("stream"), "stream: batches cannot be streamed")
        check_request(row["params"], found)
    except Refused as error:
        request.refusal = error
    return request


# --- reading --------------------------------------------------------------------------------------


async def retrieve(exchange: Exchange) -> None:
    """GET /v1/messages/batches/{id}."""

    def act() -> Json:
        batch = found_batch(exchange)
        poll(exchange.world, batch)
        return shown(batch, exchange)

    await exchange.scripted(act)


async def list_batches(exchange: Exchange) -> None:
    """GET /v1/messages/batches, newest first."""
    rows = [batch for batch in exchange.world.message_batches.values() if not batch.deleted]
    await exchange.scripted(lambda: page([shown(batch, exchange) for batch in reversed(rows)], exchange.request.query))


async def results(exchange: Exchange) -> None:
    """GET /v1/messages/batches/{id}/results: JSON lines, only once the batch has ended."""

    def act() -> Json:
        batch = found_batch(exchange)
        if batch.output is None:
            message = f"Message Batch {batch.id} has no available results: it has not ended"
            raise Refused(message, status=404, kind="not_found_error")
        return batch.output

    await exchange.scripted(act)


async def cancel(exchange: Exchange) -> None:
    """POST /v1/messages/batches/{id}/cancel."""

    def act() -> Json:
        batch = found_batch(exchange)
        expect(batch.status != "ended", f"Message Batch {batch.id} has ended and cannot be canceled")
        batch.status = "canceling"
        batch.times.setdefault("cancel_initiated_at", time.time())
        return shown(batch, exchange)

    await exchange.scripted(act)


async def delete(exchange: Exchange) -> None:
    """DELETE /v1/messages/batches/{id}."""

    def act() -> Json:
        batch = found_batch(exchange)
        expect(batch.status == "ended", f"Message Batch {batch.id} is in progress: cancel it before you delete it")
        batch.deleted = True
        return {"id": batch.id, "type": "message_batch_deleted"}

    await exchange.scripted(act)


def found_batch(exchange: Exchange) -> Batch:
    identifier = exchange.request.path.split("/")[4]
    batch = exchange.world.message_batches.get(identifier)
    if batch is None or batch.deleted:
        raise Refused(f"Message Batch {identifier} not found", status=404, kind="not_found_error")
    return batch


def shown(batch: Batch, exchange: Exchange) -> dict[str, Json]:
    """The MessageBatch object. The counts stay 0 until the end, as the real ones do."""
    counts = batch.counts or {"processing": len(batch.requests), **dict.fromkeys(OUTCOMES, 0)}
    host = exchange.request.headers.get("host", "")
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": batch.status,
        "request_counts": counts,
        "created_at": timestamp(batch.created),
        "expires_at": timestamp(batch.created + DAY),
        "ended_at": timestamp(batch.times.get("ended_at")),
        "cancel_initiated_at": timestamp(batch.times.get("cancel_initiated_at")),
        "archived_at": None,
        "results_url": None if batch.output is None else f"http://{host}/v1/messages/batches/{batch.id}/results",
    }


def timestamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


# --- ending ---------------------------------------------------------------------------------------


def poll(world: World, batch: Batch) -> None:
    """Count a look at the batch; the look after the last allowed one finds it ended."""
    limit = world.settings.batch_polls
    if batch.status != "ended" and limit is not None and batch.polls >= limit:
        end(world, batch, Ending(default="canceled" if batch.status == "canceling" else ""))
    batch.polls += 1


def end(world: World, batch: Batch, ending: Ending) -> None:
    """Answer the requests that have no other outcome, and end the batch."""
    rows = [(row.custom_id, result(world, batch, row, ending.outcome(row.custom_id))) for row in batch.requests]
    found = Counter(outcome["type"] for _, outcome in rows)
    if world.settings.shuffle:
        world.chance.shuffle(rows)
    lines = [json.dumps({"custom_id": custom_id, "result": outcome}) for custom_id, outcome in rows]
    batch.output = "".join(f"{line}\n" for line in lines).encode()
    if ending.raw is not None:
        batch.output = with_ids(ending.raw, batch.custom_ids)
    batch.counts = {"processing": 0, **{name: found[name] for name in OUTCOMES}}
    batch.status = "ended"
    batch.times["ended_at"] = time.time()


def result(world: World, batch: Batch, row: BatchRequest, outcome: str) -> dict[str, Json]:
    """The result object of one request."""
    if outcome in ("canceled", "expired"):
        return {"type": outcome}
    if row.refusal is not None:
        return {"type": "errored", "error": ERRORS.error_body(cast(Refused, row.refusal))}
    if outcome and outcome != "succeeded":
        kind = cast(FaultKind, "server" if outcome == "errored" else outcome)
        return {"type": "errored", "error": ERRORS.error_body(ERRORS.fault(Answer(fault=kind)))}
    conversation = from_anthropic(row.body, batch.key)
    answer = world.script.take(conversation)
    if answer.outcome:
        return {"type": answer.outcome}
    if answer.fault:
        return {"type": "errored", "error": ERRORS.error_body(ERRORS.fault(answer))}
    return {"type": "succeeded", "message": message(answer, conversation)}
