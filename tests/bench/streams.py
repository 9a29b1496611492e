"""Many streams of tokens in one process: ``python -m tests.bench.streams 500``, or ``measure()`` for a table.

Server, scripted provider and load generator are processes of their own; the CPU of each is reported apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.place import place
from tests.servers import ROOT

STREAMS, TOKENS, PACE = 500, 500, 50  # streams, tokens of each, milliseconds between two of them
TARGETS = {"gap_p99_ms": "<= 150", "unfinished": "== 0", "missing_tokens": "== 0"}


def measure(streams: int = STREAMS) -> dict[str, float]:
    """Gaps between tokens in milliseconds, what is missing, and the share of a core that each process took."""
    with place() as here, tempfile.TemporaryDirectory() as directory:
        said = {"type": "text", "text": "tok " * TOKENS, "pieces": ["tok "] * TOKENS}
        here.script({"blocks": [said], "delay": PACE, "times": 0}, marker="go")
        here.send(here.agent(), "warm up")
        agents = Path(directory) / "agents"
        agents.write_text("\n".join(here.agent() for _ in range(streams)), encoding="ascii")
        before, begun = here.cpu(), time.monotonic()
        command = [
            sys.executable,
            "-m",
            "tests.bench.generator",
            "--url",
            here.server.url,
            "--agents",
            str(agents),
            "--ramp",
            "15",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
        took = time.monotonic() - begun
        server, provider = (now - then for now, then in zip(here.cpu(), before, strict=True))
        found: dict[str, float] = json.loads(done.stdout)
        return {
            **found,
            "missing_tokens": streams * TOKENS - found["tokens"],
            "seconds": took,
            "server_cores": server / took,
            "provider_cores": provider / took,
            "generator_cores": found.pop("generator_cpu_seconds") / took,
            "server_us_per_token": server / max(found["tokens"], 1) * 1e6,
            "server_mb": here.memory(),
        }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STREAMS
    for name, value in measure(count).items():
        print(f"{name:<22} {value:12.2f}   {'target ' + TARGETS[name] if name in TARGETS else ''}")


if __name__ == "__main__":
    main()
