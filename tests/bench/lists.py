"""How fast lists are when there is much: ``python -m tests.bench.lists``, or ``measure()`` for a table.

Ten thousand agents, and one with a million messages beside one with a thousand; first pages and pages from the
middle, over HTTP. The rows are copied inside the database from some that the API made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from tests.bench.place import Place, percentile, place

AGENTS, MANY, FEW = 10_000, 1_000_000, 1000
PAGES, LIMIT = 60, 50
TARGETS = {
    "agents_first_p95_ms": "<= 30",
    "agents_deep_p95_ms": "<= 30",
    "messages_first_p95_ms": "<= 30",
    "messages_deep_p95_ms": "<= 30",
    "first_ratio_to_few": "<= 1.5",
    "deep_ratio_to_few": "<= 1.5",
}
COPY = """
from django.db import connection
from agents.models import Agent, Message
def copy(model, uuid, count):
    row = model.objects.get(uuid=uuid)
    def hexes(size):
        return f"substr(lower(hex(randomblob({size}))), 2)"
    four = f"lower(hex(randomblob(6))) || '4' || {hexes(2)} || 'a' || {hexes(8)}"  # ids of any other kind are not ours
    fresh = four if connection.vendor == "sqlite" else "gen_random_uuid()"
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{column}"' for column in columns)
    own = {"uuid": fresh, "context": "0"}  # as after many summaries
    values = ", ".join(own.get(column, f'"{column}"') for column in columns)
    table = model._meta.db_table
    series = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count})"
    with connection.cursor() as cursor:
        cursor.execute(f"{series} INSERT INTO {table} ({names}) SELECT {values} FROM {table}, s WHERE id = {row.pk}")
        cursor.execute("ANALYZE")
"""


def measure(many: int = MANY, agents: int = AGENTS) -> dict[str, float]:
    """Milliseconds of a page at the 95th percentile, and medians with many messages to those with few."""
    with place() as here:
        full, small = here.agent(), here.agent()
        rows = [(full, many), (small, FEW)]
        for agent, _ in rows:
            here.send(agent)
        script = [COPY, *(f"copy(Message, {_newest(here, agent)!r}, {count})" for agent, count in rows)]
        script.append(f"copy(Agent, {here.agent().partition('-')[2]!r}, {agents})")
        here.server.manage("shell", "-v", "0", "-c", "\n".join(script), seconds=1800)
        paths = {"agents": "/v1/agents/", "messages": _path(full), "few": _path(small)}
        return _figures({name: _both(here, path) for name, path in paths.items()})


def _path(agent: str) -> str:
    return f"/v1/agents/{agent}/messages"


def _newest(here: Place, agent: str) -> str:
    found = here.api.get(_path(agent), params={"limit": 1}).json()
    return str(found[-1]["id"]).partition("-")[2]


def _both(here: Place, path: str) -> tuple[list[float], list[float]]:
    """Milliseconds of many first pages, and of pages from a cursor that lies deep."""
    _page(here, path, {})
    cursor = _deep(here, path)
    first, deep = ([_page(here, path, given) for _ in range(PAGES)] for given in ({}, {"before": cursor}))
    return first, deep


def _page(here: Place, path: str, given: Mapping[str, str]) -> float:
    begun = time.perf_counter()
    answered = here.api.get(path, params={"limit": LIMIT, **given})
    took = (time.perf_counter() - begun) * 1000
    assert len(answered.json()) >= LIMIT, answered.text[:200]
    return took


def _deep(here: Place, path: str) -> str:
    """A cursor near the oldest rows, so that everything else lies between it and the first page."""
    oldest = here.api.get(path, params={"limit": 200, "order": "asc"}).json()
    return str(oldest[-1]["id"])


def _figures(found: dict[str, tuple[list[float], list[float]]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for number, where in enumerate(("first", "deep")):
        for name in ("agents", "messages"):
            figures[f"{name}_{where}_p95_ms"] = percentile(found[name][number], 0.95)
        many, few = (percentile(found[name][number], 0.5) for name in ("messages", "few"))
        figures[f"{where}_ratio_to_few"] = many / few
    return figures


def main() -> None:
    counts: Sequence[int] = [int(text) for text in sys.argv[1:]] or [MANY, AGENTS]
    for name, value in measure(*counts).items():
        print(f"{name:<24} {value:8.2f}   target {TARGETS[name]}")


if __name__ == "__main__":
    main()
