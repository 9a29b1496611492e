"""An agent looks for what was said: words as they are, dates as people write them, errors that help."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.memory import search as searching
from agents.memory.builtins import BuiltinResult, run
from agents.memory.search import BadSearch, read_search, search_text
from agents.models import Agent, Message
from tests.agents.factories import default_of, make_agent, make_conversation, make_message

NOW = datetime(2024, 10, 15, 9, 30, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def say(agent: Agent, text: str, at: str = "2024-10-14T12:00:00+00:00", role: str = "user", **fields: Any) -> Message:
    parts = [{"type": "text", "text": text}]
    if role == "tool":
        parts = [{"type": "result", "id": "c", "name": "look", "status": "success", "text": text}]
    fields.setdefault("conversation", default_of(agent))
    return make_message(
        fields.pop("conversation"), role=role, parts=parts, created_at=datetime.fromisoformat(at),
        search_text=search_text(role, parts), **fields,
    )  # fmt: skip


def find(agent: Agent, query: str, **arguments: Any) -> BuiltinResult:
    return run("conversation_search", {"query": query, **arguments}, agent, default_of(agent), now=NOW)


def said(result: BuiltinResult) -> list[str]:
    assert result.ok, result.text
    if result.text == "No messages found.":
        return []
    return [line.split(": ", 1)[1] for line in result.text.split("\n")]


def test_it_finds_every_word_in_any_order_newest_first() -> None:
    agent = make_agent()
    say(agent, "the project has updates")
    say(agent, "project only")
    say(agent, "Updates of the PROJECT", role="assistant")
    assert said(find(agent, "project updates")) == ["Updates of the PROJECT", "the project has updates"]


def test_it_ignores_case_in_every_script() -> None:
    agent = make_agent()
    say(agent, "Großer ÄRGER, ПРИВЕТ")
    for query in ("ärger", "GROSSER", "привет"):
        assert len(said(find(agent, query))) == 1


@pytest.mark.parametrize("query", ["100%", "a_b", "c\\d", "it's", '"quoted"', "%", "_", "\\", "'; --"])
def test_it_takes_wildcards_for_themselves(query: str) -> None:
    agent = make_agent()
    say(agent, "nothing of that kind: 100 axb cd its quoted")
    assert said(find(agent, query)) == []
    say(agent, f"here: {query}")
    assert said(find(agent, query)) == [f"here: {query}"]


def test_it_sees_only_its_own_conversation() -> None:
    agent, other = make_agent("a"), make_agent("b")
    say(agent, "secret", conversation=make_conversation(agent))
    say(other, "secret")
    assert said(find(agent, "secret")) == []


def test_it_finds_what_has_left_the_view_but_nothing_aborted() -> None:
    agent = make_agent()
    say(agent, "old word", context=0)
    say(agent, "half a word", role="assistant", mark="aborted")
    say(agent, "system word", role="system")
    assert said(find(agent, "word")) == ["old word"]


def test_it_looks_at_the_roles_it_is_told() -> None:
    agent = make_agent()
    for role in ("user", "assistant", "tool"):
        say(agent, f"word of {role}", role=role)
    assert said(find(agent, "word", roles=["tool", "user"])) == ["word of tool", "word of user"]
    assert len(said(find(agent, "word", roles=[]))) == 3


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, "abcd"),
        ("2024-10-14", "2024-10-14", "bc"),
        ("2024-10-14", None, "bcd"),
        (None, "2024-10-13", "a"),
        ("2024-10-14T00:00", "2024-10-14T23:59", "bc"),
        ("2024-10-14T23:59", None, "cd"),
        ("2024-10-14 23:59:58", None, "cd"),
        (None, "2024-10-14T00:00:00Z", "ab"),
        ("2024-10-14T01:00+01:00", "2024-10-14T02:00+02:00", "b"),
        ("", " ", "abcd"),
    ],
)
def test_it_takes_the_end_with_it(start: str | None, end: str | None, expected: str) -> None:
    agent = make_agent()
    say(agent, "word a", "2024-10-13T23:59:59+00:00")
    say(agent, "word b", "2024-10-14T00:00:00+00:00")
    say(agent, "word c", "2024-10-14T23:59:59.900+00:00")
    say(agent, "word d", "2024-10-15T00:00:00+00:00")
    dates = {"start_date": start, "end_date": end}
    found = said(find(agent, "word", **{name: date for name, date in dates.items() if date is not None}))
    assert "".join(sorted(text[-1] for text in found)) == expected


def test_it_counts_days_where_the_agent_is() -> None:
    agent = make_agent(timezone="America/New_York")
    say(agent, "late word", "2024-10-15T03:30:00+00:00")
    result = find(agent, "word", start_date="2024-10-14", end_date="2024-10-14")
    assert result.text == "[2024-10-14T23:30:00-04:00] user: late word"
    assert said(find(make_agent("b", timezone="No/Where"), "word")) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"end_date": "now"}, "'now' is not a date. Write YYYY-MM-DD or YYYY-MM-DDTHH:MM; it is now 2024-10-15T09:30"),
        ({"start_date": "2024-02-30"}, "start_date '2024-02-30' is not a date"),
        ({"start_date": "2024-10-14T25:00"}, "is not a date"),
        ({"start_date": "99999-01-01"}, "is not a date"),
        ({"start_date": "0001-01-01"}, "is not a date"),
        ({"end_date": "9999-12-31"}, "is not a date"),
        ({"start_date": "2024-10-15", "end_date": "2024-10-14"}, "start_date lies after end_date"),
        ({"query": ""}, "query is empty"),
        ({"query": " \n"}, "query is empty"),
        ({"query": "x" * 1001}, "at most 1000"),
        ({"limit": 0}, "limit must be between 1 and 100; it was 0"),
        ({"limit": -1}, "it was -1"),
        ({"limit": 10_000}, "it was 10000"),
        ({"roles": ["operator"]}, "roles"),
    ],
)
def test_it_says_what_is_wrong_with_a_search(arguments: dict[str, Any], hint: str) -> None:
    agent = make_agent()
    result = find(agent, **{"query": "word", **arguments})
    assert not result.ok
    assert hint in result.text
    assert "Traceback" not in result.text


def test_it_gives_as_many_as_it_is_asked_for() -> None:
    agent = make_agent()
    for number in range(15):
        say(agent, f"word {number}")
    assert len(said(find(agent, "word"))) == 10
    assert said(find(agent, "word", limit=2)) == ["word 14", "word 13"]
    assert len(said(find(agent, "word", limit=100))) == 15


def test_it_shows_a_long_message_around_the_word() -> None:
    agent = make_agent()
    say(agent, "x" * 5_000 + " needle " + "y" * 5_000)
    (line,) = said(find(agent, "Needle"))
    assert "needle" in line
    assert len(line) < 700


def test_it_looks_at_the_newest_only_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SCANNED", 3)
    agent = make_agent()
    for number in range(5):
        say(agent, f"word {number}", f"2024-10-{10 + number}T12:00:00+00:00")
    result = find(agent, "word")
    assert "word 2" in result.text
    assert "word 1" not in result.text
    assert "Only 3 messages" in result.text
    assert said(find(agent, "word", end_date="2024-10-12")) == ["word 2", "word 1", "word 0"]
    assert "Only 3" in find(agent, "word", end_date="2024-10-13").text
    assert said(find(agent, "word", end_date="2024-10-09")) == []
    assert said(find(agent, "word", limit=3, end_date="2030-01-01")) == ["word 4", "word 3", "word 2"]


def test_it_reads_a_search_without_a_database() -> None:
    search = read_search({"query": "a", "limit": 3.0}, timezone="UTC", now=NOW)
    assert (search.limit, search.start, search.end) == (3, None, None)
    with pytest.raises(BadSearch):
        read_search({"query": None}, timezone="UTC", now=NOW)
    span = read_search(
        {"query": "a", "start_date": "2024-10-27", "end_date": "2024-10-27"}, timezone="Europe/Berlin", now=NOW
    )
    assert span.start
    assert span.end
    assert span.end - span.start == timedelta(hours=25)  # the clock goes back that night


# --- what can be found ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "parts", "expected"),
    [
        ("user", [{"type": "text", "text": "Hello"}, {"type": "image", "url": "https://x"}], "hello"),
        ("assistant", [{"type": "reasoning", "text": "Secret"}, {"type": "text", "text": "Hi"}], "hi"),
        ("assistant", [{"type": "call", "name": "send_message", "arguments": '{"message": "Spoken"}'}], "spoken"),
        ("assistant", [{"type": "call", "name": "send_message", "arguments": "[1"}], ""),
        ("assistant", [{"type": "call", "name": "pay", "arguments": '{"message": "no"}'}], ""),
        ("tool", [{"type": "result", "name": "look", "text": "Found"}], "found"),
        ("tool", [{"type": "result", "name": "conversation_search", "text": "Found"}], ""),
        ("system", [{"type": "text", "text": "Prompt"}], ""), ("summary", [{"type": "text", "text": "Sum"}], ""),
        ("approval", [{"type": "decision", "sent": {}}], ""), ("user", [{"type": "text"}], ""),
        ("user", [{"type": "text", "text": "x" * 200_000}], "x" * 100_000),
    ],
)  # fmt: skip
def test_it_makes_findable_what_was_said(role: str, parts: list[dict[str, Any]], expected: str) -> None:
    assert search_text(role, parts) == expected
