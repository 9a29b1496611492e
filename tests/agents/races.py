"""Two people at once, on the database of the environment: ``python -m tests.agents.races ROUNDS`` prints JSON.

Every round lets two threads loose on the same calls, each with its own connection, and counts what came of it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]


def main(rounds: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from tests.agents.desk import person

    anna, ben = person("anna"), person("ben")
    found = {race.__name__: Counter(race(anna, ben) for _ in range(rounds)) for race in RACES}
    print(json.dumps(found))


def together(*work: Work) -> list[Any]:
    """What each of ``work`` came to when all began at the same moment: its result, or its exception."""
    barrier = threading.Barrier(len(work))
    results: list[Any] = [None] * len(work)

    def run(place: int) -> None:
        from django.db import connection

        try:
            connection.ensure_connection()
            barrier.wait(10)
            results[place] = work[place]()
        except Exception as error:
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def said(results: list[Any]) -> list[str]:
    """ "won" and "409" for what decisions came to, anything else by its own name."""
    from lettaweb.lib.problems import Problem

    words = [
        str(r.status) if isinstance(r, Problem) else repr(r) if isinstance(r, Exception) else "won" for r in results
    ]
    return sorted(words, reverse=True)


def same_call(anna: Any, ben: Any) -> str:
    """Two people decide the same call differently: one wins, one run goes on."""
    from agents.actions import desk
    from tests.agents.desk import runs_after, waiting

    call = waiting()[0]
    seen: dict[str, Any] = {"version": 1, "digest": call.digest}
    results = together(
        lambda: desk.decide(call.uuid, desk.approve(), user=anna, **seen),
        lambda: desk.decide(call.uuid, desk.deny("no"), user=ben, **seen),
    )
    return f"{' '.join(said(results))}, {len(runs_after(call))} run, {call.decisions.count()} decision"


def double_click(anna: Any, _ben: Any) -> str:
    """The same person sends the same decision twice at once: both are told yes, one decision is recorded."""
    from agents.actions import desk
    from tests.agents.desk import runs_after, waiting

    call = waiting()[0]

    def decide() -> Any:
        return desk.decide(call.uuid, desk.approve(), user=anna, version=1, digest=call.digest)

    results = together(decide, decide)
    return f"{' '.join(said(results))}, {len(runs_after(call))} run, {call.decisions.count()} decision"


def last_two(anna: Any, ben: Any) -> str:
    """Two people decide the last two calls of a set: exactly one of them creates the run."""
    from agents.actions import desk
    from tests.agents.desk import runs_after, waiting

    first, second = waiting({"order": 1}, {"order": 2})
    results = together(
        lambda: desk.decide(first.uuid, desk.approve(), user=anna, version=1, digest=first.digest),
        lambda: desk.decide(second.uuid, desk.deny("no"), user=ben, version=1, digest=second.digest),
    )
    runs = sum(1 for result in results if getattr(result, "run", None))
    return f"{' '.join(said(results))}, {runs} said so, {len(runs_after(first))} run"


def clock_and_person(anna: Any, _ben: Any) -> str:
    """A person decides while the call expires: one of both, one run."""
    from django.utils import timezone

    from agents.actions import desk
    from tests.agents.desk import due, runs_after, waiting

    call = waiting(**due(-1))[0]
    together(
        lambda: desk.decide(call.uuid, desk.approve(), user=anna, version=1, digest=call.digest),
        lambda: desk.expire_due(timezone.now()),
    )
    return f"{len(runs_after(call))} run, {call.decisions.count()} decision"


def many_and_many(anna: Any, ben: Any) -> str:
    """Two people decide the same many calls: every call once, every conversation goes on once."""
    from agents.actions import desk
    from agents.models import Decision, Run
    from tests.agents.desk import item, many

    calls = many(12)
    items = [item(call) for call in calls]
    results = together(
        lambda: desk.decide_many(items, desk.approve(), user=anna),
        lambda: desk.decide_many(list(reversed(items)), desk.deny("no"), user=ben),
    )
    won = sum(row.status == "done" for rows in results for row in rows)
    lost = sum(row.status == "already" for rows in results for row in rows)
    conversations = [call.conversation_id for call in calls]
    runs = Run.objects.filter(conversation__in=conversations, status="created").count()
    return f"{won} won, {lost} lost, {runs} runs, {Decision.objects.filter(call__in=calls).count()} decisions"


RACES = (same_call, double_click, last_two, clock_and_person, many_and_many)

if __name__ == "__main__":
    main(int(sys.argv[1]))
