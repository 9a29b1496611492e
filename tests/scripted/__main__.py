"""``python -m tests.scripted --port 9000``: the scripted provider in the foreground, driven over /_control."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json

from tests.scripted.app import start_server
from tests.scripted.world import World


async def serve(port: int, *, log_bodies: bool) -> None:
    """Serve until interrupted; the first line of output is a JSON object with the port."""
    world = World()
    world.log.bodies = log_bodies
    server = await start_server(world, port=port)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.scripted", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--forget", action="store_true", help="keep no requests (for load tests)")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, log_bodies=not options.forget))


main()
