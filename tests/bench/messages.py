"""What one message costs: ``python -m tests.bench.messages``, or ``measure()`` for a table.

CPU of the web process and time for a message, streamed and not; what each message in context adds; the first chunk.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

from tests.bench.place import Place, place

TARGETS = {
    "cpu_ms_per_message": "<= 10",
    "cpu_ms_per_message_streamed": "<= 16",
    "first_chunk_p50_ms": "<= 40",
    "us_per_message_in_context": "<= 35",
}
WORDS = 200  # deltas of an answer
SHORT, LONG, EACH = 10, 1000, 120  # messages in context, and how often a request is timed


def measure() -> dict[str, float]:
    """Milliseconds of CPU and of time for a message, and to its first chunk; microseconds for one in context."""
    with place() as here:
        said = {"type": "text", "text": "word " * WORDS, "pieces": ["word "] * WORDS}
        here.script({"blocks": [said], "times": 0})
        first = here.agent()
        repeat(10, lambda: streamed(here, first))
        cpu, wall = _cost(here, _in_turn(here, here.send))
        cpu_streamed, wall_streamed = _cost(here, _in_turn(here, lambda agent: streamed(here, agent)))
        return {
            "cpu_ms_per_message": cpu,
            "wall_ms_per_message": wall,
            "cpu_ms_per_message_streamed": cpu_streamed,
            "wall_ms_per_message_streamed": wall_streamed,
            "first_chunk_p50_ms": statistics.median(streamed(here, here.agent()) for _ in range(EACH)) * 1000,
            "us_per_message_in_context": _per_message_in_context(here),
        }


def repeat(times: int, work: Callable[[], object]) -> None:
    for _ in range(times):
        work()


def _in_turn(here: Place, work: Callable[[str], object], turns: int = 20) -> Callable[[], object]:
    """``work`` with one agent after the other, each for so many turns: what a history adds is measured apart."""
    turn = itertools.chain.from_iterable([agent] * turns for agent in [here.agent() for _ in range(EACH // turns)])
    return lambda: work(next(turn))


def _cost(here: Place, work: Callable[[], object], times: int = EACH) -> tuple[float, float]:
    """Milliseconds of the web process's CPU, and of time, for one piece of work."""
    before, begun = here.cpu()[0], time.monotonic()
    repeat(times, work)
    took = time.monotonic() - begun
    return (here.cpu()[0] - before) / times * 1000, took / times * 1000


def streamed(here: Place, agent: str) -> float:
    """Stream one message; seconds to its first chunk."""
    body = {"messages": [{"role": "user", "content": "hi"}], "stream_tokens": True}
    begun, first = time.perf_counter(), 0.0
    with here.api.stream("POST", f"/v1/agents/{agent}/messages/stream", json=body) as answered:
        for line in answered.iter_lines():
            if not first and line.startswith("data: "):
                first = time.perf_counter() - begun
    return first


def _per_message_in_context(here: Place) -> float:
    """The difference between a long and a short history, for each message of it; both vendors' bytes included."""
    agents = [with_history(here, count) for count in (SHORT, LONG)]
    repeat(3, lambda: [here.send(agent) for agent in agents])
    short, long = (_cost(here, lambda agent=agent: here.send(agent), 30)[0] for agent in agents)  # type: ignore[misc]
    return (long - short) / (LONG - SHORT) * 1000


def with_history(here: Place, count: int) -> str:
    """An agent with ``count`` messages in context, sent many at a time."""
    agent = here.agent(context_window_limit=1_000_000)
    text = "A message of an ordinary length, such as people write when they ask something. " * 2
    left = count - 2
    while left > 0:
        some, left = min(left, 100), left - 100
        messages = [{"role": "user", "content": text} for _ in range(some)]
        here.api.post(f"/v1/agents/{agent}/messages", json={"messages": messages}).raise_for_status()
    return agent


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<30} {value:8.2f}   {'target ' + TARGETS[name] if name in TARGETS else ''}")


if __name__ == "__main__":
    main()
