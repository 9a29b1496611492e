"""Lists of messages: windows, cursors, limits, filters, order, views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from agents.models import Agent, MessageContext
from tests.agents import factories as make

pytestmark = pytest.mark.django_db

UNKNOWN = "message-00000000-0000-4000-8000-000000000000"


@pytest.fixture
def agent() -> Agent:
    return make.make_agent()


def get(path: str, params: Mapping[str, Any] | None = None) -> Any:
    return APIClient().get(f"/v1/{path}", params or {})


def texts(path: str, params: Mapping[str, Any] | None = None) -> list[str]:
    answer = get(path, params)
    assert answer.status_code == 200, answer.content
    return [message["content"] for message in answer.json()]


WINDOWS = [
    ({}, "1234567"),
    ({"order": "desc"}, "1234567"),
    ({"order": "asc"}, "1234567"),
    ({"limit": 1}, "7"),
    ({"limit": 2}, "67"),
    ({"limit": 2, "order": "desc"}, "67"),
    ({"limit": 2, "order": "asc"}, "12"),
    ({"after": 3}, "4567"),
    ({"after": 3, "order": "asc"}, "4567"),
    ({"after": 3, "limit": 2}, "67"),
    ({"after": 3, "limit": 2, "order": "asc"}, "45"),
    ({"before": 5}, "1234"),
    ({"before": 5, "order": "asc"}, "1234"),
    ({"before": 5, "limit": 2}, "34"),
    ({"before": 5, "limit": 2, "order": "asc"}, "12"),
    ({"after": 2, "before": 6}, "345"),
    ({"after": 2, "before": 6, "limit": 1}, "5"),
    ({"after": 2, "before": 6, "limit": 1, "order": "asc"}, "3"),
    ({"after": 7}, ""),
    ({"before": 1}, ""),
    ({"after": 5, "before": 3}, ""),
    ({"limit": 0}, ""),
    ({"limit": 100000}, "1234567"),
    ({"after": ""}, "1234567"),
    ({"ascending": "true", "limit": 2}, "67"),
]


@pytest.mark.parametrize(("asked", "expected"), WINDOWS)
def test_it_shows_a_window_oldest_first(agent: Agent, asked: dict[str, Any], expected: str) -> None:
    conversation = make.default_of(agent)
    rows = make.make_messages(conversation, 7)
    params = {
        name: rows[value - 1].wire_id if name in ("after", "before") and value else value
        for name, value in asked.items()
    }
    wanted = [f"m{number}" for number in expected]
    run = make.make_run(conversation)
    step = make.make_step(run)
    conversation.messages.update(run=run, step=step)
    assert texts(f"agents/{agent.wire_id}/messages", params) == wanted
    assert texts("conversations/default/messages", {**params, "agent_id": agent.wire_id}) == wanted
    assert texts(f"conversations/{conversation.wire_id}/messages", params) == wanted
    assert texts("messages/", params) == wanted
    # Lists of a run and of a step begin at the oldest message unless they are told otherwise.
    params.setdefault("order", "desc")
    assert texts(f"runs/{run.wire_id}/messages", params) == wanted
    assert texts(f"steps/{step.wire_id}/messages", params) == wanted


def test_it_begins_lists_of_a_run_and_of_a_step_at_the_oldest(agent: Agent) -> None:
    conversation = make.default_of(agent)
    run = make.make_run(conversation)
    step = make.make_step(run)
    make.make_message(conversation, "outside")
    make.make_messages(conversation, 3)
    conversation.messages.exclude(search_text="outside").update(run=run, step=step)
    for path in (f"runs/{run.wire_id}/messages", f"steps/{step.wire_id}/messages"):
        assert texts(path, {"limit": 2}) == ["m1", "m2"]


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize(
    "cursor", [UNKNOWN, "nonsense", "agent-00000000-0000-4000-8000-000000000000", "\x00", "message-"]
)
@pytest.mark.parametrize("limit", [100, 0])
def test_it_does_not_know_a_cursor(agent: Agent, name: str, cursor: str, limit: int) -> None:
    make.make_messages(make.default_of(agent), 2)
    answer = get(f"agents/{agent.wire_id}/messages", {name: cursor, "limit": limit})
    assert answer.status_code == 404
    named = cursor.replace("\x00", "\ufffd")
    assert answer.json()["detail"] == f"No message found with id '{named}' for agent '{agent.wire_id}'."


def test_it_does_not_take_a_cursor_of_another_agent(agent: Agent) -> None:
    foreign = make.make_message(make.default_of(make.make_agent("other")))
    assert get(f"agents/{agent.wire_id}/messages", {"after": foreign.wire_id}).status_code == 404


BAD = [
    {"limit": "-1"},
    {"limit": "x"},
    {"limit": ""},
    {"limit": "1.5"},
    {"limit": "1e3"},
    {"limit": "100001"},
    {"limit": str(10**30)},
    {"limit": "٣"},
    {"order": "up"},
    {"order": "ASC"},
    {"order": ""},
    {"order_by": "name"},
    {"ascending": "maybe"},
    {"include_err": "maybe"},
    {"use_assistant_message": "maybe"},
    {"conversation_id": "nonsense"},
]


@pytest.mark.parametrize("params", BAD)
def test_it_refuses_a_bad_parameter(agent: Agent, params: dict[str, str]) -> None:
    assert get(f"agents/{agent.wire_id}/messages", params).status_code == 422


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("agents/nonsense/messages", 422),
        ("agents/agent-00000000-0000-4000-8000-000000000000/messages", 404),
        ("agents/agent-00000000-0000-4000-8000-00000000000Z/messages", 422),
        ("agents/AGENT-00000000-0000-4000-8000-000000000000/messages", 422),
        ("conversations/nonsense/messages", 422),
        ("conversations/default/messages", 422),
        ("conversations/default/messages?agent_id=agent-00000000-0000-4000-8000-000000000000", 404),
        ("conversations/conv-00000000-0000-4000-8000-000000000000/messages", 404),
        ("runs/nonsense/messages", 422),
        ("runs/run-00000000-0000-4000-8000-000000000000/messages", 404),
        ("steps/nonsense/messages", 422),
        ("steps/step-00000000-0000-4000-8000-000000000000/messages", 404),
        ("messages/nonsense", 422),
        (f"messages/{UNKNOWN}", 404),
    ],
)
def test_it_answers_bad_and_unknown_ids(path: str, status: int) -> None:
    answer = get(path)
    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


def test_it_takes_both_forms_of_a_path(agent: Agent) -> None:
    make.make_messages(make.default_of(agent), 1)
    for prefix in ("/v1", "/latest"):
        for end in ("", "/"):
            answer = APIClient().get(f"{prefix}/agents/{agent.wire_id}/messages{end}")
            assert answer.status_code == 200
            assert len(answer.json()) == 1


def test_it_counts_rows_and_not_wire_messages(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    thought = {"type": "reasoning", "text": "Hm.", "signature": "s"}
    said = {"type": "text", "text": "I look."}
    answer = make.make_answer(run, [thought, said, make.call_part("c1", gated=True)])
    shown = get(f"agents/{agent.wire_id}/messages", {"limit": 1}).json()
    assert [message["message_type"] for message in shown] == [
        "reasoning_message",
        "assistant_message",
        "approval_request_message",
    ]
    assert {message["id"] for message in shown} == {answer.wire_id}
    assert {message["run_id"] for message in shown} == {run.wire_id}


def test_it_shows_all_conversations_of_an_agent_or_one(agent: Agent) -> None:
    default, other = make.default_of(agent), make.make_conversation(agent)
    make.make_message(default, "here")
    make.make_message(other, "there")
    make.make_message(default, "here again")
    path = f"agents/{agent.wire_id}/messages"
    assert texts(path) == ["here", "there", "here again"]
    assert texts(path, {"conversation_id": "default"}) == ["here", "here again"]
    assert texts(path, {"conversation_id": other.wire_id}) == ["there"]
    assert texts("messages/", {"conversation_id": other.wire_id}) == ["there"]
    assert texts("messages", {"conversation_id": "default"}) == ["here", "here again"]
    foreign = make.make_conversation(make.make_agent("other"))
    make.make_message(foreign, "elsewhere")
    assert texts(path, {"conversation_id": foreign.wire_id}) == []
    assert texts(path, {"conversation_id": f"conv-{uuid4()}"}) == []


def test_it_leaves_errors_out_unless_asked(agent: Agent) -> None:
    conversation = make.default_of(agent)
    make.make_message(conversation, "right")
    make.make_message(conversation, "wrong", is_err=True)
    make.make_message(conversation, "fine", is_err=False)
    path = f"agents/{agent.wire_id}/messages"
    assert texts(path) == ["right", "fine"]
    assert texts(path, {"include_err": "true"}) == ["right", "wrong", "fine"]


def test_it_filters_by_group(agent: Agent) -> None:
    conversation = make.default_of(agent)
    make.make_message(conversation, "ours", group_id="group-1")
    make.make_message(conversation, "mine")
    assert texts(f"agents/{agent.wire_id}/messages", {"group_id": "group-1"}) == ["ours"]
    assert texts(f"agents/{agent.wire_id}/messages", {"group_id": "group-\x00"}) == []


def test_it_shows_only_the_types_asked_for(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    make.make_message(make.default_of(agent), "hi")
    make.make_answer(run, [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Hello"}])
    path = f"agents/{agent.wire_id}/messages"
    for kinds in (["user_message"], ["user_message", "assistant_message"]):
        shown = get(path, {"include_return_message_types": kinds}).json()
        assert [message["message_type"] for message in shown] == kinds


def test_it_shows_speech_by_tool_as_an_assistant_message(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    spoken = {**make.call_part("c1", "say"), "arguments": '{"words": "Good day"}'}
    make.make_answer(run, [spoken])
    make.make_message(run.conversation, role="tool", name="say", parts=[make.result_part("c1", "say")])
    path = f"agents/{agent.wire_id}/messages"
    asked = {"assistant_message_tool_name": "say", "assistant_message_tool_kwarg": "words"}
    assert texts(path, asked) == ["Good day"]
    plain = get(path, {**asked, "use_assistant_message": "false"}).json()
    assert [message["message_type"] for message in plain] == ["tool_call_message", "tool_return_message"]


def test_it_retrieves_all_wire_messages_of_one_row(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    row = make.make_answer(run, [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Hello"}])
    shown = get(f"messages/{row.wire_id}").json()
    assert [message["message_type"] for message in shown] == ["reasoning_message", "assistant_message"]
    assert shown == get(f"agents/{agent.wire_id}/messages").json()


def test_it_resolves_a_superseded_message_to_its_successor(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    make.make_message(run.conversation, "hi")
    row = make.make_answer(run, [{"type": "text", "text": "Hello"}])
    make.make_message(run.conversation, "more")
    first, second = uuid4(), uuid4()
    assert row.step is not None
    row.step.superseded = [str(first), str(second)]
    row.step.attempt, row.step.message_uuid = 3, row.uuid
    row.step.save()
    for lost in (first, second):
        assert get(f"messages/message-{lost}").json()[0]["id"] == row.wire_id
        assert texts(f"agents/{agent.wire_id}/messages", {"after": f"message-{lost}"}) == ["more"]
        assert texts(f"agents/{agent.wire_id}/messages", {"before": f"message-{lost}"}) == ["hi"]
    assert get(f"messages/message-{uuid4()}").status_code == 404


def test_it_reads_no_more_often_for_more_messages(agent: Agent, django_assert_max_num_queries: Any) -> None:
    conversation = make.default_of(agent)
    for number in range(12):
        run = make.make_run(conversation)
        make.make_message(conversation, f"m{number}", run=run)
        make.make_answer(run, [{"type": "text", "text": "Hello"}])
    with django_assert_max_num_queries(8):
        assert len(get(f"agents/{agent.wire_id}/messages").json()) == 24


def test_it_never_reads_the_text_for_searches_nor_skips_rows_by_counting(
    agent: Agent, django_capture_queries: Any
) -> None:
    rows = make.make_messages(make.default_of(agent), 5)
    with django_capture_queries() as captured:
        get(f"agents/{agent.wire_id}/messages", {"before": rows[3].wire_id, "limit": 1})
    statements = [query["sql"] for query in captured.captured_queries]
    assert not any("OFFSET" in statement for statement in statements)
    assert not any("search_text" in statement for statement in statements)


def test_it_lists_more_than_a_page_of_context(agent: Agent) -> None:
    conversation = make.default_of(agent)
    for number in range(120):
        make.make_message(conversation, f"m{number}", context=MessageContext.IN)
    shown = get("conversations/default", {"agent_id": agent.wire_id}).json()
    assert len(shown["in_context_message_ids"]) == 120


@pytest.fixture
def django_capture_queries() -> Any:
    from django.db import connection

    return lambda: CaptureQueriesContext(connection)


def test_it_answers_405_to_editing(agent: Agent) -> None:
    row = make.make_message(make.default_of(agent))
    answer = APIClient().patch(f"/v1/agents/{agent.wire_id}/messages/{row.wire_id}", {"content": "x"})
    assert answer.status_code == 405
    assert answer.json() == {"detail": "Method Not Allowed"}
