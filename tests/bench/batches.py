"""How fast a batch without tools goes: ``python -m tests.bench.batches 100 1000 10000``, or ``measure()`` for a table.

Each count runs in a process of its own on a fresh SQLite file. The provider is Anthropic's with its network cut off:
requests are written and results read as for the real one. On a busy machine the CPU is what counts; on a quiet one an
item takes hardly more time than that.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

COUNTS = (100, 1000, 10_000)
REQUEST = 10_000  # agents in a job
PIECE = 500  # agents that are made at once
TARGETS = {
    **{f"items_per_cpu_second_{count}": ">= 300" for count in COUNTS},
    "slowdown_1000_to_10000": "<= 1.3",
    "memory_growth_mb": "<= 50",
}
RESULT = (
    '{"custom_id":"%s","result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant",'
    '"model":"claude","content":[{"type":"text","text":"Good morning, here is a short answer of some length."}],'
    '"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":900,"output_tokens":14}}}}'
)


def measure(counts: Sequence[int] = COUNTS) -> dict[str, float]:
    """Items a second of CPU and of time, over prepare, ingest and step, by count of items; how the CPU of an item
    grows from 1,000 to 10,000, and the peak memory in MB from 1,000 to the largest count."""
    rows = {count: _apart(count) for count in counts}
    figures = {}
    for count, row in rows.items():
        for name in ("items_per_cpu_second", "items_per_second", "peak_mb"):
            figures[f"{name}_{count}"] = row[name]
    if {1000, 10_000} <= rows.keys():
        fast, slow = (rows[count]["items_per_cpu_second"] for count in (1000, 10_000))
        figures["slowdown_1000_to_10000"] = fast / slow
    if 1000 in rows:
        figures["memory_growth_mb"] = rows[max(rows)]["peak_mb"] - rows[1000]["peak_mb"]
    return figures


def _apart(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "LETTAWEB_DATA_DIR": folder,
            "DATABASE_URL": f"sqlite:///{folder}/bench.sqlite3",
            "DJANGO_SETTINGS_MODULE": "lettaweb.settings",
            "ANTHROPIC_API_KEY": "none",
            "LETTAWEB_LOG_LEVEL": "WARNING",
        }
        _run("--make", count, environment)
        found: dict[str, float] = json.loads(_run("--one", count, environment).splitlines()[-1])
        return found


def _run(what: str, count: int, environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "tests.bench.batches", what, str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


# --- one count: made in a process of its own, prepared and ingested in another -------------------------


def make(count: int) -> None:
    """Agents, and jobs of at most 10,000 of them."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    for first in range(0, count, REQUEST):
        _job(first, min(first + REQUEST, count))


def one(count: int) -> dict[str, float]:
    import django

    django.setup()
    from batches.models import BatchJob, BatchMember

    _ready()
    _offline()
    busy = time.process_time()
    seconds = _stages(list(BatchJob.objects.order_by("id")))
    busy = time.process_time() - busy
    assert BatchMember.objects.filter(state="done").count() == count
    assert not BatchJob.objects.exclude(status="completed").exists()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rates = {"items_per_second": count / sum(seconds.values()), "items_per_cpu_second": count / busy}
    return {"items": count, **seconds, "cpu": busy, **rates, "peak_mb": peak}


def _ready() -> None:
    """What is done in the queue's process before its workers are forked: all code is loaded."""
    from django.urls import get_resolver

    from lettaweb.lib import collector

    assert get_resolver().url_patterns
    collector.spare()


def _offline() -> None:
    """Anthropic's provider whose batches end at once."""
    from agents import providers
    from agents.providers.anthropic import Anthropic
    from agents.providers.base import BatchStatus

    class Offline(Anthropic):
        made = 0

        async def submit_batch(self, path: str, *, key: str, count: int) -> BatchStatus:
            Offline.made += 1
            with Path(path).open("rb") as lines, _names(Offline.made).open("w") as names:
                for line in lines:
                    names.write(json.loads(line)["custom_id"] + "\n")
            return BatchStatus(f"msgbatch_{Offline.made}", "in_progress")

        async def poll_batch(self, batch_id: str) -> BatchStatus:
            return BatchStatus(batch_id, "ended")

        async def batch_results(self, batch_id: str) -> AsyncIterator[bytes]:
            with _names(int(batch_id.partition("_")[2])).open() as names:
                for name in names:
                    yield (RESULT % name.strip()).encode()

    providers.TABLE = ((Offline(), ()), *providers.TABLE[1:])


def _names(number: int) -> Path:
    return Path(os.environ["LETTAWEB_DATA_DIR"]) / f"names-{number}"


def _job(first: int, end: int) -> None:
    from django.db import transaction

    from agents.models import Block
    from batches.actions import NewBatch, NewMember, create

    block, _ = Block.objects.get_or_create(label="human", value="Name: Matt")
    uuids: list[UUID] = []
    for place in range(first, end, PIECE):
        with transaction.atomic():
            uuids += _agents(block, range(place, min(place + PIECE, end)))
    inputs = [{"role": "user", "parts": [{"type": "text", "text": "Good morning"}], "fields": {}}]
    create(NewBatch([NewMember(uuid, inputs, {}) for uuid in uuids]), None)


def _agents(block: Any, numbers: Iterable[int]) -> list[UUID]:
    """Agents as the API makes them: with a conversation that holds their system message, and a block."""
    from django.utils import timezone

    from agents.actions.boot import first_messages
    from agents.models import Agent, AgentBlock, Conversation, Message
    from lettaweb.lib.many import insert_many

    model = {"model": "claude-3-5-haiku-20241022", "context_window": 200_000}
    fields = {"model": "anthropic/claude-3-5-haiku-20241022", "system": "You are kind.", "llm_config": model}
    agents = [Agent(name=f"agent {number}", **fields) for number in numbers]
    insert_many(agents)
    AgentBlock.objects.bulk_create([AgentBlock(agent=agent, block=block, label="human") for agent in agents])
    own = [Conversation(agent=agent, is_default=True) for agent in agents]
    insert_many(own)
    now = timezone.now()
    said = [(conversation, first_messages(conversation.agent, now)[0]) for conversation in own]
    insert_many(
        [
            Message(
                conversation=c, agent=c.agent, role=first.role, parts=[dict(p) for p in first.parts], created_at=now
            )
            for c, first in said
        ]
    )
    return [agent.uuid for agent in agents]


def _stages(jobs: Sequence[Any]) -> dict[str, float]:
    from batches.models import LLMBatch
    from batches.poll import WAVE, begin, close, download, lease, may_leave, step, submit, watch
    from batches.poll.cycle import Cycle
    from batches.poll.depart import Departure

    seconds = {"prepare": 0.0, "ingest": 0.0, "step": 0.0}

    def timed(name: str, begun: float) -> float:
        now = time.perf_counter()
        seconds[name] += now - begun
        return now

    with lease.hold() as held:
        assert held is not None
        with Cycle(held, seconds=1e9, by_hand=True) as cycle:
            at = time.perf_counter()
            for job in jobs:
                while begin(cycle, job, most=WAVE) or may_leave(cycle, job):
                    Departure(cycle, job).leave()
                    submit(cycle, job)
            at = timed("prepare", at)
            LLMBatch.objects.update(next_at=None)
            for job in jobs:
                watch(cycle, job)
                download(cycle, job)
            at = timed("ingest", at)
            for job in jobs:
                step(cycle, job)
                close(job)
            timed("step", at)
    return seconds


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        make(int(sys.argv[2]))
        return
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(int(sys.argv[2]))))
        return
    for count in [int(word) for word in sys.argv[1:]] or COUNTS:
        print("  ".join(f"{name} {value:.2f}" for name, value in _apart(count).items()), flush=True)


if __name__ == "__main__":
    main()
