"""Searching messages: literal words, the newest first, one form per route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from agents.models import Agent
from tests.agents import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make.make_agent(project_id="p1")


def search(body: Any, route: str = "messages/search") -> Any:
    return APIClient().post(f"/v1/{route}", body, format="json")


def contents(body: Mapping[str, Any]) -> list[str]:
    answer = search(body)
    assert answer.status_code == 200, answer.content
    return [found["content"] for found in answer.json()]


def test_it_finds_words_everywhere_the_newest_first(agent: Agent) -> None:
    side = make.make_conversation(make.make_agent("other"))
    make.make_message(make.default_of(agent), "The invoice is late")
    make.make_message(side, "An INVOICE was paid", role="assistant")
    make.make_message(side, "Nothing of the kind")
    assert contents({"query": "invoice"}) == ["An INVOICE was paid", "The invoice is late"]
    assert contents({"query": "Invoice LATE"}) == ["The invoice is late"]
    assert contents({"query": "invoice", "limit": 1}) == ["An INVOICE was paid"]
    assert contents({"query": "invoice", "limit": 0}) == []
    assert contents({"query": "invoice", "agent_id": agent.wire_id}) == ["The invoice is late"]
    assert contents({"query": "invoice", "conversation_id": side.wire_id}) == ["An INVOICE was paid"]
    assert contents({"query": "invoice", "conversation_id": "default"}) == ["The invoice is late"]
    assert contents({"query": "invoice", "agent_id": f"agent-{uuid4()}"}) == []
    assert len(contents({"query": ""})) == 3


@pytest.mark.parametrize(
    ("text", "query"), [("100% sure", "100%"), ("a_b", "a_b"), ("back\\slash", "\\"), ("Straße", "STRASSE")]
)
def test_it_takes_signs_of_patterns_as_they_are(agent: Agent, text: str, query: str) -> None:
    from agents.memory.search import fold

    make.make_message(make.default_of(agent), text, search_text=fold(text))
    make.make_message(make.default_of(agent), "100 times axb", search_text="100 times axb")
    assert contents({"query": query}) == [text]


def test_it_says_where_it_was_said(agent: Agent) -> None:
    side = make.make_conversation(agent)
    row = make.make_message(side, "needle")
    assert search({"query": "needle"}).json() == [
        {
            "message_type": "user_message",
            "content": "needle",
            "created_at": "2026-03-01T12:00:00.000000Z",
            "message_id": row.wire_id,
            "agent_id": agent.wire_id,
            "conversation_id": side.wire_id,
        }
    ]


def test_it_finds_by_date(agent: Agent) -> None:
    for number in range(3):
        make.make_message(make.default_of(agent), f"note {number}")
    first, last = "2026-03-01T12:01:00Z", "2026-03-01T13:01:00+01:00"
    assert contents({"query": "note", "start_date": first}) == ["note 2", "note 1"]
    assert contents({"query": "note", "end_date": last}) == ["note 0"]


def test_it_ranks_rows_for_older_clients(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    make.make_message(make.default_of(agent), "needle in hay")
    call = make.make_answer(run, [{"type": "text", "text": "a needle"}, make.call_part("c1")])
    type(call).objects.filter(pk=call.pk).update(search_text="a needle")
    found = search({"query": "needle"}, "agents/messages/search").json()
    assert [item["fts_rank"] for item in found] == [1, 2]
    assert found[0]["rrf_score"] > found[1]["rrf_score"]
    message = found[0]["message"]
    assert (message["id"], message["role"], message["agent_id"]) == (call.wire_id, "assistant", agent.wire_id)
    assert message["content"] == [{"type": "text", "text": "a needle", "signature": None}]
    assert message["tool_calls"][0]["function"] == {"name": "refund", "arguments": "{}"}
    assert message["conversation_id"] is None
    assert found[1]["embedded_text"] == "needle in hay"


def test_it_filters_what_older_clients_ask_for(agent: Agent) -> None:
    make.make_message(make.default_of(agent), "needle", role="user")
    make.make_message(make.default_of(make.make_agent("other")), "needle", role="assistant")
    for body, roles in (
        ({"query": "needle"}, ["assistant", "user"]),
        ({}, ["assistant", "user"]),
        ({"query": "needle", "roles": ["user"]}, ["user"]),
        ({"query": "needle", "project_id": "p1"}, ["user"]),
        ({"query": "needle", "template_id": "t"}, []),
    ):
        found = search(body, "agents/messages/search/").json()
        assert [item["message"]["role"] for item in found] == roles, body


@pytest.mark.parametrize("route", ["messages/search", "agents/messages/search"])
@pytest.mark.parametrize(
    "extra",
    [
        {"limit": -1},
        {"limit": "x"},
        {"limit": 10**9},
        {"search_mode": "psychic"},
        {"start_date": "yesterday"},
        {"query": {"a": 1}},
        {"query": "x" * 10_001},
    ],
)
def test_it_refuses_a_bad_search(route: str, extra: dict[str, Any]) -> None:
    assert search({"query": "x", **extra}, route).status_code == 422


@pytest.mark.parametrize(
    "body", [{}, [], "x", {"query": None}, {"query": "x", "agent_id": "x"}, {"query": "x", "conversation_id": "x"}]
)
def test_it_refuses_a_search_without_sense(body: Any) -> None:
    assert search(body).status_code == 422


@pytest.mark.parametrize("mode", ["vector", "fts", "hybrid"])
def test_it_accepts_every_mode(agent: Agent, mode: str) -> None:
    make.make_message(make.default_of(agent), "needle")
    assert contents({"query": "needle", "search_mode": mode}) == ["needle"]


def test_it_finds_in_a_fixed_number_of_reads(agent: Agent, django_assert_max_num_queries: Any) -> None:
    for _ in range(15):
        make.make_answer(make.make_run(make.default_of(agent)), [{"type": "text", "text": "x"}])
    with django_assert_max_num_queries(5):
        search({"query": ""})
    with django_assert_max_num_queries(5):
        search({}, "agents/messages/search")
