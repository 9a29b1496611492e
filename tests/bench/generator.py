"""Opens many streams at once and times every token. For any server that speaks the API:

    python -m tests.bench.generator --url http://127.0.0.1:8283 --agents ids.txt --streams 500

prints one JSON object. Plain sockets and no parsing beyond what is needed: the generator must not be what is slow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.place import more_files, percentile

TOKEN = re.compile(rb'"message_type":\s*"assistant_message"')


@dataclass
class Stream:
    """One stream: when each token came, in seconds of the monotonic clock."""

    times: list[float] = field(default_factory=list)
    done: bool = False
    begun: float = 0.0


async def follow(url: str, agent: str, token: str, stream: Stream) -> None:
    parts = urlsplit(url)
    body = json.dumps({"messages": [{"role": "user", "content": "go"}], "stream_tokens": True, "background": True})
    head = (
        f"POST /v1/agents/{agent}/messages/stream HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: {len(body)}\r\n"
    )
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    stream.begun = time.monotonic()
    writer.write(f"{head}\r\n{body}".encode())
    try:
        while piece := await reader.read(65_536):
            count = len(TOKEN.findall(piece))
            if count:
                stream.times += [time.monotonic()] * count
            if b"data: [DONE]" in piece:
                stream.done = True
                return
    finally:
        writer.close()


async def load(url: str, agents: list[str], *, token: str = "", ramp: float = 5.0) -> list[Stream]:
    """One stream for each agent, begun over ``ramp`` seconds."""
    streams = [Stream() for _ in agents]
    tasks = []
    for agent, stream in zip(agents, streams, strict=True):
        tasks.append(asyncio.create_task(follow(url, agent, token, stream)))
        await asyncio.sleep(ramp / len(agents))
    await asyncio.gather(*tasks, return_exceptions=True)
    return streams


def figures(streams: list[Stream]) -> dict[str, float]:
    gaps = [b - a for one in streams for a, b in zip(one.times, one.times[1:], strict=False)]
    first = max((one.times[0] for one in streams if one.times), default=0.0)
    last = min((one.times[-1] for one in streams if one.times), default=0.0)
    held = [
        b - a for one in streams for a, b in zip(one.times, one.times[1:], strict=False) if first <= a and b <= last
    ]
    firsts = [one.times[0] - one.begun for one in streams if one.times]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "streams": len(streams),
        "unfinished": sum(not one.done for one in streams),
        "tokens": sum(len(one.times) for one in streams),
        "fewest_tokens": min((len(one.times) for one in streams), default=0),
        "gap_p50_ms": percentile(gaps, 0.5) * 1000,
        "gap_p99_ms": percentile(gaps, 0.99) * 1000,
        "gap_max_ms": max(gaps, default=0.0) * 1000,
        "all_open_seconds": max(last - first, 0.0),
        "all_open_gap_p99_ms": percentile(held, 0.99) * 1000,
        "first_token_p50_ms": percentile(firsts, 0.5) * 1000,
        "generator_cpu_seconds": usage.ru_utime + usage.ru_stime,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.generator", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--agents", required=True, help="a file with agents' ids, one a line")
    parser.add_argument("--streams", type=int, default=0, help="0: one for each agent")
    parser.add_argument("--token", default="")
    parser.add_argument("--ramp", type=float, default=5.0, help="seconds over which the streams begin")
    options = parser.parse_args()
    more_files()
    agents = Path(options.agents).read_text(encoding="ascii").split()
    agents = agents[: options.streams or len(agents)]
    streams = asyncio.run(load(options.url, agents, token=options.token, ramp=options.ramp))
    json.dump(figures(streams), sys.stdout)


if __name__ == "__main__":
    main()
