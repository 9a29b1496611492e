"""One request on its way through the rules, the script and the delivery. What the routes of both vendors share."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.scripted.answers import Answer
from tests.scripted.checks import has_lone_surrogate
from tests.scripted.deliver import Delivery, Vendor
from tests.scripted.http import Reply, Request
from tests.scripted.log import Received
from tests.scripted.refusals import Refused
from tests.scripted.world import World

Json = Any


@dataclass(slots=True)
class Exchange:
    """A request, its entry in the log and the way back."""

    world: World
    request: Request
    reply: Reply
    entry: Received
    vendor: Vendor

    def delivery(self, answer: Answer) -> Delivery:
        return Delivery(answer, self.reply, self.entry, self.vendor, self.world.holds, self.world.log)

    async def refuse(self, error: Refused) -> None:
        """Answer with a refusal and note its reason."""
        self.entry.refusal = error.message
        await self.reply.json(error.status, self.vendor.error_body(error))

    async def answer(
        self, answer: Answer, *, stream: bool, whole: Callable[[], Json], frames: Callable[[], Sequence[bytes]]
    ) -> None:
        """Send the script's answer to a generation request."""
        delivery = self.delivery(answer)
        if not await delivery.before(stream=stream):
            return
        if stream:
            await delivery.send_events(frames())
        else:
            await delivery.send_json(whole(), len(frames()) if answer.delay else 0)

    async def scripted(self, act: Callable[[], Json]) -> None:
        """A file or batch route: the ordinary answer of ``act``, unless the script has something for this route."""
        answer = self.world.script.take_route(self.request.method, self.request.path) or Answer()
        if answer.lost:
            act()
            await self.delivery(answer).lose()
            return
        if await self.delivery(answer).before(stream=False):
            body = act()
            if isinstance(body, bytes):
                await self.reply.whole(200, body, "application/octet-stream", answer.headers)
            else:
                await self.reply.json(200, {**body, **(answer.patch or {})}, answer.headers)


Route = Callable[[Exchange], Awaitable[None]]


def parse_json(request: Request) -> Json:
    """The body as JSON. Raises Refused as the vendors do for what is no JSON or no UTF-8."""
    try:
        body = json.loads((request.body or b"").decode())
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None
    if b"\\u" in (request.body or b"") and has_lone_surrogate(body):
        raise Refused("The request body is not valid JSON: no low surrogate in string")
    return body
