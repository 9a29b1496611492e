"""The control routes under /_control: what a test in another process can ask of the server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.scripted.batch_rows import Ending
from tests.scripted.endings import end_batch
from tests.scripted.http import Reply, Request
from tests.scripted.log import as_json
from tests.scripted.world import World

Json = Any
Control = Callable[[World, Request, Json], Awaitable[Json]]


async def add_script(world: World, request: Request, body: Json) -> Json:
    """POST /_control/script: one entry or a list of entries (see Script.load)."""
    for entry in body if isinstance(body, list) else [body]:
        world.script.load(entry)
    return {"pending": world.script.pending()}


async def requests(world: World, request: Request, body: Json) -> Json:
    """GET /_control/requests?at_least=n&timeout=s: the log; waits for n generations when asked to."""
    wanted = int(request.query.get("at_least", "0"))
    deadline = time.monotonic() + float(request.query.get("timeout", "0"))
    while sum(entry.is_generation for entry in world.log.requests) < wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return {
        "requests": [as_json(entry) for entry in world.log.requests],
        "refused": [as_json(entry) for entry in world.log.requests if entry.refusal],
        "pending": world.script.pending(),
        "waiting": sorted(world.holds.waiting),
    }


async def reset(world: World, request: Request, body: Json) -> Json:
    """POST /_control/reset."""
    world.reset()
    return {}


async def release(world: World, request: Request, body: Json) -> Json:
    """POST /_control/release {"hold": name}: let the answers held under this name go on."""
    world.holds.gate(body["hold"]).set()
    return {}


async def change_settings(world: World, request: Request, body: Json) -> Json:
    """POST /_control/settings: fields of Settings; log_bodies false keeps no requests (for load tests)."""
    for name, value in body.items():
        if name == "log_bodies":
            world.log.bodies = value
        else:
            getattr(world.settings, name)
            setattr(world.settings, name, value)
    return {}


async def cpu(world: World, request: Request, body: Json) -> Json:
    """GET /_control/cpu: CPU seconds of this process so far, and the number of requests."""
    return {"cpu_seconds": time.process_time(), "requests": world.log.count}


async def finish_batch(world: World, request: Request, body: Json) -> Json:
    """POST /_control/end_batch {"id", "outcomes", "default", "raw", "raw_errors", "status"} (see Ending)."""
    options = dict(body)
    identifier = options.pop("id")
    for name in ("raw", "raw_errors"):
        if isinstance(options.get(name), str):
            options[name] = options[name].encode()
    end_batch(world, identifier, Ending(**options))
    return {}


async def batches(world: World, request: Request, body: Json) -> Json:
    """GET /_control/batches: id, status and custom ids of all batches."""
    found = [*world.message_batches.values(), *world.batches.values()]
    return {"batches": [{"id": row.id, "status": row.status, "custom_ids": row.custom_ids} for row in found]}


ROUTES: dict[tuple[str, str], Control] = {
    ("POST", "/_control/script"): add_script,
    ("GET", "/_control/requests"): requests,
    ("POST", "/_control/reset"): reset,
    ("POST", "/_control/release"): release,
    ("POST", "/_control/settings"): change_settings,
    ("POST", "/_control/end_batch"): finish_batch,
    ("GET", "/_control/batches"): batches,
    ("GET", "/_control/cpu"): cpu,
}


async def handle(world: World, request: Request, reply: Reply) -> None:
    """Answer a control request; a wrong one gets 400 and the reason."""
    control = ROUTES.get((request.method, request.path))
    if control is None:
        await reply.json(404, {"detail": "no such control"})
        return
    try:
        body = json.loads(request.body) if request.body else {}
        await reply.json(200, await control(world, request, body))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        await reply.json(400, {"detail": f"{type(error).__name__}: {error}"})
