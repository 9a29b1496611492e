"""Old logs go, and their readers are told so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agents import outbox, tasks
from agents.events import Fence, append_facts, page
from agents.models import OutboxItem, Run, RunStatus
from agents.views.replay import find_run
from lettaweb.lib.problems import Problem
from tests.agents import factories as make
from tests.agents.desk import person

pytestmark = pytest.mark.django_db


def logged(days: float, status: str = RunStatus.COMPLETED) -> Run:
    """A run that ended so many days ago, with a log."""
    over = status == RunStatus.COMPLETED
    run = make.make_run(make.make_conversation(make.make_agent()), status)
    Run.objects.filter(pk=run.pk).update(completed_at=timezone.now() - timedelta(days=days) if over else None)
    append_facts(Fence(run.pk, 1), [["stop", "end_turn"], ["usage", {}]])
    return run


def test_it_drops_logs_of_runs_that_ended_long_ago() -> None:
    old = [logged(31) for _ in range(25)]
    young, running = logged(29), logged(99, RunStatus.RUNNING)
    assert tasks.apply_retention() == 25
    assert tasks.apply_retention() == 0
    assert [bool(page(run.pk, 0)) for run in (old[0], old[-1], young, running)] == [False, False, True, True]
    vera = person("vera", "viewer")
    with pytest.raises(Problem) as caught:
        find_run(vera, old[0].wire_id)
    assert caught.value.status == 410
    assert find_run(vera, young.wire_id)[0] == young


def test_it_keeps_logs_for_ever_when_told_so(settings: Any) -> None:
    settings.LETTAWEB_EVENTS_KEEP_DAYS = 0
    logged(1000)
    assert tasks.apply_retention() == 0


def test_it_drops_old_deliveries_but_not_what_is_still_to_be_sent() -> None:
    now = timezone.now()
    done, failed, open_, job, young = (outbox.put("x", "https://example.com/", {}) for _ in range(5))
    for item, fields in (
        (done, {"delivered_at": now}), (failed, {"failed_at": now}), (open_, {}),
        (job, {"delivered_at": now, "job": uuid4()}), (young, {"delivered_at": now}),
    ):  # fmt: skip
        OutboxItem.objects.filter(pk=item.pk).update(created_at=now - timedelta(days=31), **fields)
    OutboxItem.objects.filter(pk=young.pk).update(created_at=now)
    assert tasks.apply_retention() == 2
    assert set(OutboxItem.objects.all()) == {open_, job, young}
