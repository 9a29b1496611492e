"""The batches API of OpenAI: a state machine that polls or the test move on, answered by the script at its end."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, cast

from tests.scripted.answers import Answer, FaultKind
from tests.scripted.batch_rows import Batch, BatchRequest, Ending, with_ids
from tests.scripted.conversation import from_openai
from tests.scripted.exchange import Exchange, parse_json
from tests.scripted.openai_files import store
from tests.scripted.openai_params import check_request
from tests.scripted.openai_routes import ERRORS, bearer
from tests.scripted.openai_wire import completion
from tests.scripted.refusals import Refused, expect
from tests.scripted.world import World

Json = Any

ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions")
FIELDS = {"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"}
OPEN = ("validating", "in_progress", "finalizing", "cancelling")
DAY = 86_400


async def create(exchange: Exchange) -> None:
    """POST /v1/batches. What is wrong with the lines of the file shows later, as status failed."""
    body = parse_json(exchange.request)
    check_create(body, exchange.world)

    def act() -> Json:
        content = exchange.world.files[body["input_file_id"]].content
        requests, faults = read_lines(content, exchange.world.settings.file_requests)
        exchange.entry.items = [f"{row.custom_id}: {row.refusal}" for row in requests if row.refusal]
        exchange.entry.items += [f"line {fault['line']}: {fault['message']}" for fault in faults]
        key = bearer(exchange.request.headers)
        batch = Batch(f"batch_{secrets.token_hex(12)}", key, "validating", requests, time.time(), faults=faults)
        batch.metadata, batch.input_file = body.get("metadata"), body["input_file_id"]
        exchange.world.batches[batch.id] = batch
        return shown(batch)

    await exchange.scripted(act)


def check_create(body: Json, world: World) -> None:
    """Refuse what the API refuses when a batch is created. Raises Refused."""
    expect(isinstance(body, dict), "We could not parse the JSON body of your request.")
    for name in body:
        expect(name in FIELDS, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    for name in ("input_file_id", "endpoint", "completion_window"):
        expect(name in body, f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")
    known = f"Invalid value: '{body['endpoint']}'. Supported values are: {', '.join(ENDPOINTS)}."
    expect(body["endpoint"] in ENDPOINTS, known, param="endpoint", code="invalid_value")
    window = body["completion_window"]
    expect(
        window == "24h",
        f"Invalid value: '{window}'. Value must be '24h'.",
        param="completion_window",
        code="invalid_value",
    )
    row = world.files.get(body["input_file_id"])
    if row is None or row.purpose != "batch":
        raise Refused(f"No such File object: {body['input_file_id']}", param="input_file_id")
    check_metadata(body.get("metadata"))


def check_metadata(metadata: Json) -> None:
    if metadata is None:
        return
    expect(
        isinstance(metadata, dict),
        "Invalid type for 'metadata': expected an object.",
        param="metadata",
        code="invalid_type",
    )
    expect(len(metadata) <= 16, "Invalid 'metadata': too many properties, at most 16.", param="metadata")
    for name, value in metadata.items():
        expect(len(name) <= 64, f"Invalid 'metadata': key '{name}' is longer than 64 characters.", param="metadata")
        fits = isinstance(value, str) and len(value) <= 512
        expect(fits, f"Invalid 'metadata.{name}': expected a string of at most 512 characters.", param="metadata")


def read_lines(content: bytes, limit: int) -> tuple[list[BatchRequest], list[dict[str, Json]]]:
    """(requests, faults of the file): one fault per line that is no request of this batch."""
    requests: list[BatchRequest] = []
    faults: list[dict[str, Json]] = []
    models: set[str] = set()
    known: set[str] = set()
    for number, line in enumerate(filter(None, content.split(b"\n")), 1):
        code, message, row = read_line(line, known, models)
        if row is not None:
            requests.append(row)
            known.add(row.custom_id)
        else:
            faults.append({"code": code, "line": number, "message": message, "param": None})
    if len(requests) > limit:
        faults.append(
            {"code": "too_many_tasks", "line": None, "message": f"More than {limit} requests.", "param": None}
        )
    if not requests and not faults:
        faults.append({"code": "empty_file", "line": None, "message": "The input file is empty.", "param": None})
    return requests, faults


def read_line(line: bytes, known: set[str], models: set[str]) -> tuple[str, str, BatchRequest | None]:
    """("", "", request), or (code, message, None) for a line that fails the validation of the file."""
    try:
        value = json.loads(line)
    except ValueError:
        return "invalid_json_line", "This line is not parseable as valid JSON.", None
    if not isinstance(value, dict) or not isinstance(value.get("custom_id"), str):
        return "missing_required_parameter", "Missing required parameter: 'custom_id'.", None
    if value.get("method") != "POST" or value.get("url") != "/v1/chat/completions":
        return "mismatched_url", "The method and URL of each line must be those of the batch.", None
    if value["custom_id"] in known:
        return "duplicate_custom_id", f"The custom_id {value['custom_id']!r} has been used before in this file.", None
    if not isinstance(value.get("body"), dict):
        return "missing_required_parameter", "Missing required parameter: 'body'.", None
    models.add(str(value["body"].get("model")))
    if len(models) > 1:
        return "mismatched_model", "All requests of a batch must be for the same model.", None
    return "", "", checked(value)


def checked(value: Mapping[str, Json]) -> BatchRequest:
    request = BatchRequest(value["custom_id"], value["body"])
    try:
        expect(not value["body"].get("stream"), "Streaming is not supported in batches.", param="stream")
        check_request(value["body"])
    except Refused as error:
        request.refusal = error
    return request


# --- reading --------------------------------------------------------------------------------------


async def retrieve(exchange: Exchange) -> None:
    """GET /v1/batches/{id}."""

    def act() -> Json:
        batch = found_batch(exchange)
        poll(exchange.world, batch)
        return shown(batch)

    await exchange.scripted(act)


async def list_batches(exchange: Exchange) -> None:
    """GET /v1/batches, newest first, in pages of ``limit`` (20, at most 100) by ``after``."""
    query = exchange.request.query
    limit = query.get("limit", "20")
    expect(limit.isdigit() and 1 <= int(limit) <= 100, "Invalid 'limit': expected 1 to 100.", param="limit")
    rows = list(reversed(exchange.world.batches.values()))
    ids = [batch.id for batch in rows]
    if cursor := query.get("after"):
        expect(cursor in ids, f"No batch found with id '{cursor}'.", param="after")
        rows = rows[ids.index(cursor) + 1 :]
    data = [shown(batch) for batch in rows[: int(limit)]]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    await exchange.scripted(lambda: {"object": "list", "data": data, **ends, "has_more": len(rows) > int(limit)})


async def cancel(exchange: Exchange) -> None:
    """POST /v1/batches/{id}/cancel."""

    def act() -> Json:
        batch = found_batch(exchange)
        if batch.status not in OPEN:
            raise Refused(f"Cannot cancel a batch with status '{batch.status}'.", status=409)
        move(batch, "cancelling")
        return shown(batch)

    await exchange.scripted(act)


def found_batch(exchange: Exchange) -> Batch:
    identifier = exchange.request.path.split("/")[3]
    batch = exchange.world.batches.get(identifier)
    if batch is None:
        raise Refused(f"No batch found with id '{identifier}'.", status=404)
    return batch


def shown(batch: Batch) -> dict[str, Json]:
    """The Batch object."""
    times = {f"{name}_at": int(at) for name, at in batch.times.items()}
    names = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "errors": {"object": "list", "data": batch.faults} if batch.status == "failed" else None,
        "input_file_id": batch.input_file,
        "completion_window": "24h",
        "status": batch.status,
        "output_file_id": batch.output_file,
        "error_file_id": batch.error_file,
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + DAY,
        **{f"{name}_at": times.get(f"{name}_at") for name in names},
        "request_counts": batch.counts or {"total": 0, "completed": 0, "failed": 0},
        "metadata": batch.metadata,
    }


# --- moving on ------------------------------------------------------------------------------------


def move(batch: Batch, status: str) -> None:
    batch.status = status
    batch.times.setdefault(status, time.time())


def poll(world: World, batch: Batch) -> None:
    """Count a look at the batch and move it one state on; the look after the last allowed one finds it ended."""
    limit = world.settings.batch_polls
    if batch.status not in OPEN or limit is None:
        return
    if batch.faults:
        move(batch, "failed")
    elif batch.polls >= limit:
        end(world, batch, Ending(default="canceled" if batch.status == "cancelling" else ""))
    elif batch.status == "validating":
        move(batch, "in_progress")
        batch.counts = {"total": len(batch.requests), "completed": 0, "failed": 0}
    batch.polls += 1


def end(world: World, batch: Batch, ending: Ending) -> None:
    """Answer the requests that have no other outcome, write the files, and end the batch."""
    output: list[bytes] = []
    errors: list[bytes] = []
    outcomes: set[str] = set()
    for row in batch.requests:
        outcome, line = result(world, batch, row, ending.outcome(row.custom_id))
        outcomes.add(outcome)
        (output if outcome == "succeeded" else errors).append(json.dumps(line).encode() + b"\n")
    if world.settings.shuffle:
        world.chance.shuffle(output)
    batch.output_file = write(world, batch, file_content(batch, output, ending.raw), "output")
    batch.error_file = write(world, batch, file_content(batch, errors, ending.raw_errors), "error")
    batch.counts = {"total": len(batch.requests), "completed": len(output), "failed": len(errors)}
    by_outcome = "cancelled" if batch.status == "cancelling" else "expired" if "expired" in outcomes else "completed"
    move(batch, ending.status or by_outcome)


def file_content(batch: Batch, lines: list[bytes], raw: bytes | None) -> bytes:
    return b"".join(lines) if raw is None else with_ids(raw, batch.custom_ids)


def write(world: World, batch: Batch, content: bytes, kind: str) -> str | None:
    """The id of a file with this content; None without any."""
    return store(world, f"{batch.id}_{kind}.jsonl", "batch_output", content).id if content else None


def result(world: World, batch: Batch, row: BatchRequest, outcome: str) -> tuple[str, dict[str, Json]]:
    """(outcome, line) of one request."""
    if row.refusal is not None:
        return "errored", error_line(row, cast(Refused, row.refusal))
    if outcome in ("", "succeeded"):
        conversation = from_openai(row.body, batch.key)
        answer = world.script.take(conversation)
        if not answer.outcome and not answer.fault:
            return "succeeded", line(row, 200, completion(answer, conversation))
        outcome = answer.outcome or str(answer.fault)
    if outcome in ("expired", "canceled"):
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[outcome]
        error = {"code": code, "message": "This request could not be executed before the completion window expired."}
        return outcome, {**line(row, 0, None), "response": None, "error": error}
    kind = cast(FaultKind, "server" if outcome == "errored" else outcome)
    return "errored", error_line(row, ERRORS.fault(Answer(fault=kind)))


def error_line(row: BatchRequest, error: Refused) -> dict[str, Json]:
    return line(row, error.status, ERRORS.error_body(error))


def line(row: BatchRequest, status: int, body: Json) -> dict[str, Json]:
    response = {"status_code": status, "request_id": secrets.token_hex(16), "body": body}
    return {"id": f"batch_req_{secrets.token_hex(8)}", "custom_id": row.custom_id, "response": response, "error": None}
