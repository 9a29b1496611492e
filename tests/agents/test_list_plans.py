"""How the database finds the rows of a list: by an index, the first page and a deep one alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from agents.models import Agent, RunStatus
from tests.agents import factories as make

pytestmark = pytest.mark.django_db

LISTS = [
    "agents/{agent}/messages",
    "agents/{agent}/messages?before={message}",
    "agents/{agent}/messages?after={message}&order=asc",
    "agents/{agent}/messages?conversation_id=default&before={message}",
    "agents/{agent}/messages?conversation_id={conversation}&after={message}",
    "conversations/{conversation}/messages?before={message}",
    "conversations/default/messages?agent_id={agent}&after={message}",
    "messages/?before={message}",
    "messages/?conversation_id={conversation}",
    "runs/{run}/messages?after={message}",
    "steps/{step}/messages",
    "runs/?before={run}",
    "runs/?agent_id={agent}&after={run}",
    "runs/?agent_ids={agent}",
    "runs/?conversation_id={conversation}&before={run}",
    "runs/?statuses=failed",
    "steps/?after={step}",
    "steps/?agent_id={agent}&after={step}",
    "steps/?has_feedback=true",
    "conversations/?after={conversation}",
    "conversations/?agent_id={agent}&after={conversation}",
    "conversations/?order_by=last_message_at&after={conversation}",
    "conversations/?agent_id={agent}&order_by=last_message_at&after={conversation}",
    "conversations/?agent_id={agent}&order_by=last_message_at&order=asc&before={conversation}",
]


@pytest.fixture
def named() -> dict[str, str]:
    agent = make.make_agent()
    side = make.make_conversation(agent, last_message_at=make.START)
    run = make.make_run(side)
    answer = make.make_answer(run, [{"type": "text", "text": "Hello"}])
    assert answer.step is not None
    make.make_run(make.default_of(agent), RunStatus.RUNNING)
    return {
        "agent": agent.wire_id,
        "conversation": side.wire_id,
        "message": answer.wire_id,
        "run": run.wire_id,
        "step": answer.step.wire_id,
    }


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans are worded by SQLite")
@pytest.mark.parametrize("path", LISTS)
def test_it_seeks_and_never_sorts_or_skips(named: dict[str, str], path: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        answer = APIClient().get(f"/v1/{path.format(**named)}")
    assert answer.status_code in (200, 404), answer.content
    statements = [query["sql"] for query in captured.captured_queries if 'FROM "agents_' in query["sql"]]
    assert statements
    for statement in statements:
        assert "OFFSET" not in statement
        for step in plan(statement):
            assert "TEMP B-TREE" not in step, statement
            # A walk along the primary key, newest first, is what an unfiltered list is.
            assert "SCAN" not in step or "INDEX" in step or is_walk(statement), statement


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans are worded by SQLite")
@pytest.mark.parametrize("path", ["runs/active", "runs/?active=true&agent_id={agent}", "runs/?statuses=running"])
def test_it_finds_active_runs_by_their_own_index(named: dict[str, str], path: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert len(APIClient().get(f"/v1/{path.format(**named)}").json()) == 1
    listing = next(query["sql"] for query in captured.captured_queries if "('created', 'running')" in query["sql"])
    assert any("one_active_run" in step or "run_active" in step for step in plan(listing)), list(plan(listing))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans are worded by SQLite")
def test_it_reads_of_the_histories_of_agents_what_is_in_context(named: dict[str, str]) -> None:
    shown = make.make_message(make.default_of(Agent.objects.get()), "Hello")
    with CaptureQueriesContext(connection) as captured:
        assert APIClient().get("/v1/agents/").json()[0]["message_ids"] == [shown.wire_id]
    (reading,) = (query["sql"] for query in captured.captured_queries if 'FROM "agents_message"' in query["sql"])
    assert any("message_in_context" in step for step in plan(reading)), list(plan(reading))


def plan(statement: str) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        yield from [row[-1] for row in cursor.fetchall()]


def is_walk(statement: str) -> bool:
    """Whether a list has no filter that an index could serve."""
    return (
        statement.count("FROM") == 1 and '"id" DESC LIMIT' in statement and "_id" not in statement.partition("WHERE")[2]
    )
