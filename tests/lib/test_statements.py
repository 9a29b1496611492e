"""Statements made once: they store what ``save()`` stores and read what the query set reads."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Agent
from batches.models import BatchItem, BatchJob, BatchMember
from lettaweb.lib import statements
from lettaweb.lib.many import Later, insert_many, update_many, write
from lettaweb.lib.statements import PreparedMany, PreparedManyValues, insert, update

pytestmark = pytest.mark.django_db
AT = datetime(2026, 5, 6, 7, 8, 9, 101112, tzinfo=UTC)
LATER = datetime(2026, 5, 6, 7, 8, 10, tzinfo=UTC)
OWN = ("id", "uuid", "created_at", "updated_at")


def agent() -> Agent:
    return Agent(
        name="x", model="demo/demo", llm_config={"a": [1, None, "ü"]}, tool_rules=[], hidden=None, metadata=None,
        message_buffer_autoclear=True, last_run_completion=AT, last_run_duration_ms=2**40,
    )  # fmt: skip


def item() -> BatchItem:
    job = BatchJob.objects.create()
    member = BatchMember.objects.create(job=job, position=0, agent_uuid=uuid.uuid4(), since=AT)
    return BatchItem(job=job, member=member, agent_uuid=uuid.UUID(int=5), cost=Decimal("0.000000123"), answered_at=AT)


def another(row: Any) -> Any:
    made = copy(row)
    made.uuid = uuid.uuid4()
    return made


def stored(row: Model) -> dict[str, Any]:
    """The columns of a row as they are in the database, without those that are its own."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {row._meta.db_table} WHERE id = %s", [row.pk])
        names = [column[0] for column in cursor.description]
        found = dict(zip(names, cursor.fetchone(), strict=True))
    assert all(type(found[name]) is type(found["created_at"]) for name in ("created_at", "updated_at"))
    return {name: value for name, value in found.items() if name not in (*OWN, "job_id", "member_id")}


@pytest.mark.parametrize("make", [agent, item])
@pytest.mark.parametrize(
    "write",
    [insert, lambda row: insert_many([row]), lambda row: insert_many([another(row), row])],
    ids=["one", "one of many", "many"],
)
def test_it_inserts_as_save_does(make: Callable[[], Model], write: Callable[[Model], None]) -> None:
    saved, written = make(), make()
    saved.save(force_insert=True)
    write(written)
    assert stored(written) == stored(saved)
    assert not written._state.adding


@pytest.mark.parametrize("write", [update, lambda row, *names: update_many([row], *names)], ids=["one", "many"])
def test_it_updates_as_save_does(write: Callable[..., Any]) -> None:
    saved, written = agent(), agent()
    names = ("llm_config", "metadata", "hidden", "last_run_completion", "updated_at")
    for row in (saved, written):
        row.save()
        row.llm_config, row.metadata, row.hidden, row.last_run_completion = {}, {"k": 1.5}, True, None
        row.name = "not among the names"
    saved.save(update_fields=names)
    before = timezone.now()
    write(written, *names)
    assert stored(written) == stored(saved)
    written.refresh_from_db()
    assert (written.name, written.updated_at >= before) == ("x", True)


def test_it_gives_keys_in_the_order_of_the_rows() -> None:
    rows = [Agent(name=f"n{number}", model="demo/demo") for number in range(250)]
    insert_many(rows)
    assert [Agent.objects.get(pk=row.pk).name for row in rows[::83]] == [row.name for row in rows[::83]]
    assert not update(Agent(id=rows[-1].pk + 1, name="gone", model="demo/demo"), "name")


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> list[Agent]:
    """Five agents, when a statement takes no more than two keys."""
    monkeypatch.setattr(statements, "AT_ONCE", 2)
    made = [agent() for _ in range(5)]
    insert_many(made)
    return made


def test_it_reads_rows_of_many_keys_as_the_query_set_does(agents: list[Agent], django_assert_num_queries: Any) -> None:
    prepared = PreparedMany(lambda keys: Agent.objects.filter(pk__in=keys).order_by("id"))
    keys = [row.pk for row in agents]
    prepared(keys[:1])
    with django_assert_num_queries(3):
        found = prepared(keys)
    expected = list(Agent.objects.order_by("id"))
    fields = [field.attname for field in Agent._meta.concrete_fields]
    assert [[getattr(row, name) for name in fields] for row in found] == [
        [getattr(row, name) for name in fields] for row in expected
    ]
    with django_assert_num_queries(0):
        assert prepared([]) == []


def test_it_reads_of_rows_what_was_asked_for(agents: list[Agent], django_assert_num_queries: Any) -> None:
    names = PreparedMany(lambda keys: Agent.objects.filter(pk__in=keys).order_by("id").only("id", "uuid"))
    values = PreparedManyValues(
        lambda keys: Agent.objects.filter(pk__in=keys, name="x").order_by("id").values_list("uuid", "updated_at")
    )
    with django_assert_num_queries(3):
        found = names([row.pk for row in agents])
        assert [row.uuid for row in found] == [row.uuid for row in agents]
    assert found[0].get_deferred_fields() >= {"name", "llm_config"}
    assert [tuple(row) for row in values([row.pk for row in agents])] == [(r.uuid, r.updated_at) for r in agents]


def test_values_that_come_again_are_stored_as_before() -> None:
    rows = [Agent(name=str(at), model="m", last_run_completion=at, llm_config={}) for at in (AT, AT, LATER, None)]
    insert_many(rows)
    rows[0].last_run_completion = LATER.astimezone(timezone.get_fixed_timezone(90))  # the same moment, said otherwise
    update_many(rows[:1], "last_run_completion")
    found = Agent.objects.in_bulk([row.pk for row in rows])
    assert [found[row.pk].last_run_completion for row in rows] == [LATER, AT, LATER, None]
    assert [found[row.pk].llm_config for row in rows] == [{}] * 4


def test_rows_that_are_stored_together_were_made_at_one_moment() -> None:
    before = timezone.now()
    rows = [Agent(name="n", model="m") for _ in range(3)]
    insert_many(rows)
    assert len({row.created_at for row in rows} | {row.updated_at for row in rows}) == 1
    made = rows[0].created_at
    assert before <= made <= timezone.now()
    update_many(rows, "updated_at")
    assert Agent.objects.filter(created_at=made, updated_at__gt=made).count() == 3


def test_what_was_put_off_is_written_once_and_with_the_others() -> None:
    agents = [Agent(name=f"n{number}", model="m") for number in range(3)]
    laters = [Later(), Later()]
    laters[0].insert(agents[0])
    laters[1].insert(agents[1])
    laters[1].insert(agents[2])
    laters[0].update(agents[0], "name")
    agents[0].name = "changed"
    with CaptureQueriesContext(connection) as executed:
        write(laters)
        write(laters)
    assert len(executed) == 2
    assert list(Agent.objects.order_by("id").values_list("name", flat=True)) == ["changed", "n1", "n2"]
    assert [agent.pk for agent in agents] == list(Agent.objects.order_by("id").values_list("pk", flat=True))


def test_a_row_is_read_without_what_was_left_out() -> None:
    insert(Agent(name="x", model="m", llm_config={"a": 1}))
    row = Agent.objects.defer("llm_config", "name").get()
    assert row.get_deferred_fields() == {"llm_config", "name"}
    assert (row.llm_config, row.name, row._state.adding, row._state.db) == ({"a": 1}, "x", False, "default")
    row.model = "other"
    row.save()
    assert Agent.objects.get().model == "other"
