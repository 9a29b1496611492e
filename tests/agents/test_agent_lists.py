"""Lists of agents: filters, pages, count, a bounded number of reads; tags."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from tests.rest import UNKNOWN, get, names, new_agent, new_block, new_tool
from tests.tools.sources import ROLL_DICE, SECRET_CODE

pytestmark = pytest.mark.django_db


@pytest.fixture
def four() -> list[str]:
    """The ids of the agents a0 … a3, oldest first; a0 and a2 are even."""
    made = [new_agent(name=f"a{n}", tags=["all", *(["even"] if n % 2 == 0 else [])])["id"] for n in range(4)]
    Agent.objects.filter(name="a1").update(last_run_completion=datetime(2026, 1, 2, tzinfo=UTC))
    Agent.objects.filter(name="a0").update(
        last_run_completion=datetime(2026, 1, 3, tzinfo=UTC), last_stop_reason="error", project_id="p"
    )
    return made


LISTS: list[tuple[dict[str, Any], str]] = [
    ({}, "3210"),
    ({"tags": ["all"]}, "3210"),
    ({"tags": ["even"]}, "20"),
    ({"tags": ["even", "nothing"]}, "20"),
    ({"tags": ["all", "even"], "match_all_tags": "true"}, "20"),
    ({"tags": ["all", "even"], "match_all_tags": "false"}, "3210"),
    ({"tags": ["nothing"]}, ""),
    ({"name": "a1"}, "1"),
    ({"name": "a"}, ""),
    ({"query_text": "A"}, "3210"),
    ({"query_text": "2"}, "2"),
    ({"query_text": "_"}, ""),
    ({"project_id": "p"}, "0"),
    ({"last_stop_reason": "error"}, "0"),
    ({"template_id": "t"}, ""),
    ({"identity_id": "identity-1"}, ""),
    ({"identifier_keys": ["k"]}, ""),
    ({"created_by_id": "user-1"}, ""),
    ({"limit": 2}, "32"),
    ({"limit": 0}, ""),
    ({"after": 1}, "0"),
    ({"before": 1}, "32"),
    ({"after": 3, "before": 0}, "21"),
    ({"order": "asc"}, "0123"),
    ({"order": "asc", "after": 1}, "23"),
    ({"order": "asc", "before": 1}, "0"),
    ({"ascending": "true"}, "3210"),
    ({"after": "agent-" + UNKNOWN}, "3210"),
    ({"order_by": "last_run_completion"}, "0132"),
    ({"sort_by": "last_run_completion", "order": "asc"}, "1023"),
    ({"order_by": "updated_at", "limit": 1}, "3"),
    ({"include": ["agent.tools", "agent.tags"], "include_relationships": ["tools"]}, "3210"),
]


@pytest.mark.parametrize(("params", "shown"), LISTS)
@pytest.mark.parametrize("path", ["agents", "agents/"])
def test_it_lists(four: list[str], path: str, params: dict[str, Any], shown: str) -> None:
    for cursor in params.keys() & {"after", "before"}:
        if isinstance(params[cursor], int):
            params = {**params, cursor: four[params[cursor]]}
    assert names(get(path, **params)) == [f"a{n}" for n in shown]


@pytest.mark.parametrize(
    "params",
    [{"limit": "x"}, {"limit": -1}, {"order": "up"}, {"match_all_tags": "maybe", "tags": "a"}, {"order_by": "x"}],
)
def test_it_refuses_bad_parameters(params: dict[str, Any]) -> None:
    get("agents/", expect=422, **params)


def test_it_counts(four: list[str]) -> None:
    assert get("agents/count") == 4
    assert get("agents/count/", tags="even") == 2


def test_it_walks_all_pages(four: list[str]) -> None:
    seen: list[str] = []
    while page := get("agents/", limit=3, after=seen[-1] if seen else ""):
        seen += [agent["id"] for agent in page]
    assert seen == four[::-1]


@pytest.mark.parametrize("params", [{}, {"order": "asc"}, {"order_by": "last_run_completion"}])
def test_it_walks_all_pages_upwards(four: list[str], params: dict[str, Any]) -> None:
    """As the second client does: the first of a page is the cursor of the next."""
    whole = [agent["id"] for agent in get("agents/", **params)]
    seen = whole[-1:]
    while page := get("agents/", limit=2, before=seen[0], **params):
        seen = [agent["id"] for agent in page] + seen
        assert len(seen) <= len(whole)
    assert seen == whole
    assert sorted(seen) == sorted(four)


def test_it_reads_a_bounded_number_of_times() -> None:
    tools = [new_tool(ROLL_DICE)["id"], new_tool(SECRET_CODE)["id"]]
    block = new_block("shared")["id"]
    body: dict[str, Any] = {"tool_ids": tools, "block_ids": [block], "tags": ["a", "b"], "secrets": {"K": "v"}}

    def reads(count: int) -> int:
        while Agent.objects.count() < count:
            new_agent(**body, memory_blocks=[{"label": "own", "value": "x"}])
        with CaptureQueriesContext(
            connection,
        ) as found:
            shown = get("agents/", limit=100)
        assert len(shown) == count
        assert all(len(agent["tools"]) == 2 and len(agent["blocks"]) == 2 for agent in shown)
        return len(found)

    few = reads(2)
    assert reads(12) == few <= 11


def test_it_words_no_statement_anew_but_that_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    block = new_block("shared")["id"]
    new_agent(tool_ids=[new_tool(ROLL_DICE)["id"]], block_ids=[block], tags=["a"], secrets={"K": "v"})
    shown = get("agents/")
    worded: list[type[Model] | None] = []
    as_sql = SQLCompiler.as_sql

    def counted(compiler: SQLCompiler, *given: Any, **more: Any) -> Any:
        worded.append(compiler.query.model)
        return as_sql(compiler, *given, **more)

    monkeypatch.setattr(SQLCompiler, "as_sql", counted)
    assert get("agents/") == shown
    assert worded == [Agent]


def test_it_lists_the_agents_of_a_block() -> None:
    block = new_block("shared")["id"]
    made = [new_agent(name=f"a{n}", block_ids=[block]) for n in range(3)]
    new_agent(name="other")
    assert names(get(f"blocks/{block}/agents")) == ["a2", "a1", "a0"]
    assert names(get(f"blocks/{block}/agents", order="asc", after=made[0]["id"], limit=1)) == ["a1"]


TAGS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["alpha", "beta", "gamma"]),
    ({"order": "desc"}, ["gamma", "beta", "alpha"]),
    ({"limit": 2}, ["alpha", "beta"]),
    ({"after": "alpha"}, ["beta", "gamma"]),
    ({"before": "beta"}, ["alpha"]),
    ({"before": "gamma", "limit": 1}, ["beta"]),
    ({"before": "alpha", "limit": 1, "order": "desc"}, ["beta"]),
    ({"after": "beta", "order": "desc"}, ["alpha"]),
    ({"after": "alpha\x00"}, ["beta", "gamma"]),
    ({"query_text": "MM"}, ["gamma"]),
    ({"name": "bet"}, ["beta"]),
    ({"limit": 0}, []),
]


@pytest.mark.parametrize(("params", "shown"), TAGS)
@pytest.mark.parametrize("path", ["tags", "tags/"])
def test_it_lists_tags(path: str, params: dict[str, Any], shown: list[str]) -> None:
    new_agent(tags=["gamma", "alpha"])
    new_agent(tags=["beta", "alpha"])
    assert get(path, **params) == shown


@pytest.mark.parametrize("path", ["agents", "blocks"])
def test_it_shows_hidden_rows_only_when_asked(path: str) -> None:
    if path == "agents":
        new_agent(hidden=True)
    else:
        new_block("secret", hidden=True)
    assert get(f"{path}/") == []
    assert get(f"{path}/count") == 0
    assert len(get(f"{path}/", **{f"show_hidden_{path}": True})) == 1
