"""Conversations: begun, listed, changed, forked, recompiled, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from agents.models import Agent, Conversation, Message, MessageContext, MessageRole
from tests.agents import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make.make_agent(system="You are billing.")


@pytest.fixture
def api() -> APIClient:
    return APIClient()


def found(params: Mapping[str, Any] | None = None) -> list[str]:
    answer = APIClient().get("/v1/conversations/", params or {})
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()]


def test_it_begins_a_conversation_with_a_system_message(agent: Agent, api: APIClient) -> None:
    answer = api.post(f"/v1/conversations/?agent_id={agent.wire_id}", {"summary": "Refunds"}, format="json")
    assert answer.status_code == 200, answer.content
    made = answer.json()
    assert made["id"].startswith("conv-")
    assert (made["agent_id"], made["summary"], made["archived"]) == (agent.wire_id, "Refunds", False)
    shown = api.get(f"/v1/conversations/{made['id']}/messages").json()
    assert [message["message_type"] for message in shown] == ["system_message"]
    assert "You are billing." in shown[0]["content"]
    assert made["in_context_message_ids"] == [shown[0]["id"]]
    assert api.get(f"/v1/conversations/{made['id']}").json() == made


@pytest.mark.parametrize("form", ["query", "body"])
def test_it_takes_the_agent_from_query_or_body(agent: Agent, api: APIClient, form: str) -> None:
    query = f"?agent_id={agent.wire_id}" if form == "query" else ""
    body = {"agent_id": agent.wire_id} if form == "body" else {}
    assert api.post(f"/v1/conversations{query}", body, format="json").status_code == 200


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", {}, 422),
        ("agent_id=nonsense", {}, 422),
        ("agent_id=agent-00000000-0000-4000-8000-000000000000", {}, 404),
        ("agent", {"summary": 5}, 200),
        ("agent", {"summary": {"a": 1}}, 422),
        ("agent", {"context_window_limit": 0}, 422),
        ("agent", {"context_window_limit": 10**30}, 422),
        ("agent", {"model_settings": "x"}, 422),
        ("agent", {"model": "no-slash"}, 400),
        ("agent", {"model": "nobody/x"}, 404),
        ("agent", [], 422),
        ("agent", {"summary": "a\x00b", "surprise": True}, 200),
    ],
)
def test_it_checks_a_new_conversation(agent: Agent, api: APIClient, query: str, body: Any, status: int) -> None:
    query = f"agent_id={agent.wire_id}" if query == "agent" else query
    before = Conversation.objects.count()
    answer = api.post(f"/v1/conversations/?{query}", body, format="json")
    assert answer.status_code == status, answer.content
    assert Conversation.objects.count() == before + (status == 200)


PAGES = [
    ({}, "54321"),
    ({"order": "asc"}, "12345"),
    ({"after": 3}, "21"),
    ({"after": 3, "order": "asc"}, "45"),
    ({"before": 3}, "54"),
    ({"before": 3, "order": "asc"}, "12"),
    ({"limit": 2}, "54"),
    ({"limit": 0}, ""),
    ({"after": "conv-00000000-0000-4000-8000-000000000000"}, "54321"),
    # said last: 2, 4, 1 at the same moment as 4; never: 3 and 5
    ({"order_by": "last_message_at"}, "24153"),
    ({"order_by": "last_message_at", "order": "asc"}, "14235"),
    ({"order_by": "last_message_at", "limit": 2}, "24"),
    ({"order_by": "last_message_at", "limit": 4}, "2415"),
    ({"order_by": "last_message_at", "after": 2}, "4153"),
    ({"order_by": "last_message_at", "after": 4}, "153"),
    ({"order_by": "last_message_at", "after": 4, "limit": 2}, "15"),
    ({"order_by": "last_message_at", "after": 1}, "53"),
    ({"order_by": "last_message_at", "after": 5}, "3"),
    ({"order_by": "last_message_at", "after": 3}, ""),
    ({"order_by": "last_message_at", "before": 4}, "2"),
    ({"order_by": "last_message_at", "before": 1}, "24"),
    ({"order_by": "last_message_at", "before": 5}, "241"),
    ({"order_by": "last_message_at", "before": 3}, "2415"),
    ({"order_by": "last_message_at", "after": 2, "before": 5}, "41"),
    ({"order_by": "last_message_at", "after": 1, "order": "asc"}, "4235"),
    ({"order_by": "last_message_at", "after": 3, "order": "asc"}, "5"),
    ({"order_by": "last_message_at", "before": 2, "order": "asc"}, "14"),
    ({"sort_by": "last_message_at"}, "24153"),
    ({"sort_by": "anything"}, "54321"),
    ({"order_by": "last_run_completion"}, "42531"),
    ({"order_by": "last_run_completion", "after": 4}, "2531"),
    ({"order_by": "last_run_completion", "after": 2}, "531"),
    ({"order_by": "last_run_completion", "before": 5}, "42"),
    ({"order_by": "last_run_completion", "order": "asc"}, "24135"),
]


@pytest.mark.parametrize(("asked", "expected"), PAGES)
def test_it_pages_conversations(agent: Agent, asked: dict[str, Any], expected: str) -> None:
    rows = [make.make_conversation(agent) for _ in range(5)]
    for number, minutes in ((2, 9), (4, 5), (1, 5)):
        Conversation.objects.filter(pk=rows[number - 1].pk).update(
            last_message_at=make.START + timedelta(minutes=minutes)
        )
    for number, minutes in ((2, 5), (4, 1), (4, 8)):
        make.make_run(rows[number - 1], completed_at=make.START + timedelta(minutes=minutes))
    params = {
        name: rows[value - 1].wire_id if isinstance(value, int) and name in ("after", "before") else value
        for name, value in asked.items()
    }
    wanted = [rows[int(number) - 1].wire_id for number in expected]
    assert found(params) == wanted
    assert found({**params, "agent_id": agent.wire_id}) == wanted


def test_it_filters_conversations(agent: Agent) -> None:
    plain = make.make_conversation(agent, summary="About Refunds")
    archived = make.make_conversation(agent, archived_at=make.START, summary="old")
    make.make_conversation(agent, hidden=True)
    other = make.make_conversation(make.make_agent("other"))
    asked: list[tuple[dict[str, str], list[Conversation]]] = [
        ({}, [other, plain]),
        ({"agent_id": agent.wire_id}, [plain]),
        ({"agent_id": f"agent-{uuid4()}"}, []),
        ({"archive_status": "unarchived"}, [other, plain]),
        ({"archive_status": "archived"}, [archived]),
        ({"archive_status": "all"}, [other, archived, plain]),
        ({"summary_search": "refund"}, [plain]),
        ({"summary_search": "100%"}, []),
        ({"summary_search": "\x00"}, [other, plain]),
    ]
    for params, expected in asked:
        assert found(params) == [row.wire_id for row in expected], params


@pytest.mark.parametrize(
    "params",
    [{"archive_status": "x"}, {"order_by": "x"}, {"order": "x"}, {"limit": "x"}, {"limit": "-5"}, {"agent_id": "x"}],
)
def test_it_refuses_a_bad_parameter(api: APIClient, params: dict[str, str]) -> None:
    assert api.get("/v1/conversations/", params).status_code == 422


def test_it_changes_what_is_named_and_nothing_else(agent: Agent, api: APIClient) -> None:
    row = make.make_conversation(agent, summary="s", description="d")
    path = f"/v1/conversations/{row.wire_id}"
    assert api.patch(path, {"archived": True}, format="json").json()["archived"] is True
    again = api.patch(path, {"archived": True, "summary": None}, format="json").json()
    assert (again["summary"], again["description"]) == (None, "d")
    back = api.patch(path, {"archived": False, "last_message_at": "2026-03-01T12:00:00Z"}, format="json").json()
    assert (back["archived"], back["archived_at"]) == (False, None)
    assert back["last_message_at"] == "2026-03-01T12:00:00.000000Z"
    assert api.patch(path, {"model": "nobody/x"}, format="json").status_code == 404
    assert api.patch(path, {}, format="json").status_code == 200


def test_it_names_the_default_conversation_by_its_agent(agent: Agent, api: APIClient) -> None:
    shown = api.get("/v1/conversations/default", {"agent_id": agent.wire_id}).json()
    assert (shown["id"], shown["agent_id"]) == ("default", agent.wire_id)
    assert api.get(f"/v1/conversations/{agent.wire_id}").json() == shown, "as some clients still say it"
    assert api.get("/v1/conversations/agent-1").status_code == 422
    assert api.get("/v1/conversations/agent-00000000-0000-4000-8000-000000000000").status_code == 404
    assert api.get("/v1/conversations/default").status_code == 422
    assert api.delete(f"/v1/conversations/default?agent_id={agent.wire_id}").status_code == 400
    assert found({"agent_id": agent.wire_id}) == []


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("get", ""),
        ("patch", ""),
        ("delete", ""),
        ("get", "/messages"),
        ("post", "/cancel"),
        ("post", "/fork"),
        ("post", "/recompile"),
        ("post", "/compact"),
    ],
)
@pytest.mark.parametrize(("wire", "status"), [("nonsense", 422), ("conv-00000000-0000-4000-8000-000000000000", 404)])
def test_it_answers_bad_and_unknown_ids(api: APIClient, method: str, rest: str, wire: str, status: int) -> None:
    assert getattr(api, method)(f"/v1/conversations/{wire}{rest}").status_code == status


def fork(api: APIClient, source: Conversation, **query: str) -> list[Any]:
    params = "&".join(f"{name}={value}" for name, value in query.items())
    answer = api.post(f"/v1/conversations/{source.wire_id}/fork?{params}")
    assert answer.status_code == 200, answer.content
    shown: list[Any] = api.get(f"/v1/conversations/{answer.json()['id']}/messages").json()
    assert shown[0]["message_type"] == "system_message"
    return shown[1:]


def test_it_forks_what_is_in_context(agent: Agent, api: APIClient) -> None:
    source = make.make_conversation(agent)
    make.make_message(source, "prompt", role=MessageRole.SYSTEM)
    gone = make.make_message(source, "gone", context=MessageContext.OUT)
    make.make_message(source, "summary of gone", role=MessageRole.SUMMARY)
    kept = make.make_message(source, "kept")
    make.make_message(source, "later")
    copied = fork(api, source)
    assert [message.get("content") or message["summary"] for message in copied] == ["summary of gone", "kept", "later"]
    assert not {message["id"] for message in copied} & {row.wire_id for row in source.messages.all()}
    assert [
        message["summary"] if "summary" in message else message["content"]
        for message in fork(api, source, message_id=kept.wire_id)
    ] == ["summary of gone", "kept"]
    assert [message["content"] for message in fork(api, source, message_id=gone.wire_id)] == ["gone"]
    assert source.messages.count() == 5


def test_it_does_not_fork_a_call_that_waits(agent: Agent, api: APIClient) -> None:
    source = make.make_conversation(agent)
    run = make.make_run(source)
    make.make_message(source, "do both")
    make.make_answer(run, [make.call_part("c1")])
    make.make_message(source, role="tool", name="refund", parts=[make.result_part("c1")])
    make.make_answer(run, [{"type": "text", "text": "one more"}, make.call_part("c2", gated=True)])
    kinds = [message["message_type"] for message in fork(api, source)]
    assert kinds == ["user_message", "tool_call_message", "tool_return_message"]


def test_it_forks_the_default_conversation_and_hides_the_fork(agent: Agent, api: APIClient) -> None:
    make.make_message(make.default_of(agent), "hi")
    answer = api.post(f"/v1/conversations/default/fork?agent_id={agent.wire_id}&hidden=true")
    assert answer.status_code == 200
    assert answer.json()["id"].startswith("conv-")
    assert found() == []


def test_it_does_not_fork_at_a_message_of_elsewhere(agent: Agent, api: APIClient) -> None:
    source = make.make_conversation(agent)
    foreign = make.make_message(make.default_of(agent))
    for wire, status in ((foreign.wire_id, 404), ("nonsense", 422), (f"message-{uuid4()}", 404)):
        assert api.post(f"/v1/conversations/{source.wire_id}/fork?message_id={wire}").status_code == status


def test_it_recompiles_the_system_prompt(agent: Agent, api: APIClient) -> None:
    row = make.make_conversation(agent)
    stored = make.make_message(row, "stale", role=MessageRole.SYSTEM)
    dry = api.post(f"/v1/conversations/{row.wire_id}/recompile?dry_run=true")
    assert "You are billing." in dry.json()
    stored.refresh_from_db()
    assert stored.parts[0]["text"] == "stale"
    assert api.post(f"/v1/conversations/{row.wire_id}/recompile").json() == dry.json()
    stored.refresh_from_db()
    assert stored.parts[0]["text"] == dry.json()
    assert Message.objects.filter(conversation=row).count() == 1


def test_it_lists_conversations_in_a_fixed_number_of_reads(agent: Agent, django_assert_max_num_queries: Any) -> None:
    for _ in range(20):
        make.make_messages(make.make_conversation(agent), 3)
    with django_assert_max_num_queries(8):
        assert len(found({"agent_id": agent.wire_id})) == 20


def test_it_has_nothing_to_compact_in_a_short_conversation(agent: Agent, api: APIClient) -> None:
    side = make.make_conversation(agent)
    make.make_message(side, "hi")
    for path in (
        f"conversations/{side.wire_id}/compact",
        f"conversations/default/compact?agent_id={agent.wire_id}",
        f"agents/{agent.wire_id}/summarize",
        f"agents/{agent.wire_id}/summarize?max_message_length=10",
    ):
        assert api.post(f"/v1/{path}").status_code == 400
    body = {"agent_id": agent.wire_id, "compaction_settings": {"mode": "all"}}
    assert api.post("/v1/conversations/default/compact", body, format="json").status_code == 400


BAD_SETTINGS: list[Any] = ["all", [1], {"mode": 5}, {"model": []}]


@pytest.mark.parametrize(
    "body", [*({"compaction_settings": settings} for settings in BAD_SETTINGS), {"agent_id": {}}, [1]]
)
def test_it_refuses_bad_settings_of_a_compaction(agent: Agent, api: APIClient, body: Any) -> None:
    side = make.make_conversation(agent)
    for path in (f"conversations/{side.wire_id}/compact", f"conversations/{side.wire_id}/recompile"):
        assert api.post(f"/v1/{path}", body, format="json").status_code == 422
