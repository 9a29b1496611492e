"""The pages about agents, runs and tools: what they show, and what may be changed there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Block, Conversation, Run, RunStatus
from agents.models.agent import AgentBlock
from tests.agents.factories import default_of, make_agent, make_message, make_run, make_step
from tests.pages.rows import make_tool, settled_call, text_of, waiting_call
from tools import rules
from tools.models import Tool

pytestmark = pytest.mark.django_db


def with_block(agent: Agent, value: str = "Likes tea.") -> Block:
    block = Block.objects.create(label="human", value=value)
    AgentBlock.objects.create(agent=agent, block=block, label="human")
    return block


def test_it_shows_what_waits_runs_and_failed(operator: Client) -> None:
    waiting_call(agent_name="asker")
    make_run(default_of(make_agent("worker")), RunStatus.RUNNING)
    error = {"type": "llm_error", "message": "The vendor is away."}
    make_run(default_of(make_agent("loser")), RunStatus.FAILED, error=error)
    settled_call("interrupted", ok=False, decided_at=None, agent_name="cut off")
    page = text_of(operator.get("/"))
    for words in ("asker", "worker", "loser", "The vendor is away.", "cut off", "Interrupted, outcome unknown"):
        assert words in page


def test_it_lists_agents_by_page_and_name(operator: Client) -> None:
    for number in range(60):
        make_agent(f"clerk {number:02}")
    page = text_of(operator.get("/agents/"))
    assert "clerk 59" in page
    assert "clerk 09" not in page
    assert "Older agents" in page
    assert "clerk 07" in text_of(operator.get("/agents/?q=k+07"))


@pytest.mark.parametrize("path", ["/agents/?q=%00", "/tools/?q=%00&after=%00", "/runs/?state=%00&agent=%00&below=%00"])
def test_it_survives_addresses_that_make_no_sense(operator: Client, path: str) -> None:
    assert operator.get(path).status_code == 200


def test_it_keeps_its_number_of_queries(operator: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(50):
        make_run(default_of(make_agent(f"clerk {number}")))
    for path in ("/agents/", "/runs/", "/tools/", "/"):
        with django_assert_max_num_queries(20):
            assert operator.get(path).status_code == 200


def test_it_sends_a_message(operator: Client) -> None:
    agent = make_agent()
    response = operator.post(f"/agents/{agent.wire_id}/message/", {"text": "line 1\r\nline 2"})
    assert response.status_code == 302
    run = Run.objects.get(agent=agent)
    assert run.messages.get().parts == [{"type": "text", "text": "line 1\nline 2"}]
    page = text_of(operator.get(response["Location"]))
    assert f'data-run="{run.wire_id}"' in page
    again = operator.post(f"/agents/{agent.wire_id}/message/", {"text": "and this"}, follow=True)
    assert "currently being processed" in text_of(again)
    assert Run.objects.count() == 1


def test_it_refuses_messages_of_nothing_and_by_viewers(operator: Client, viewer: Client) -> None:
    agent = make_agent()
    page = operator.post(f"/agents/{agent.wire_id}/message/", {"text": "  "}, follow=True)
    assert "Please write something first." in text_of(page)
    assert viewer.post(f"/agents/{agent.wire_id}/message/", {"text": "hi"}).status_code == 403
    assert "Send</button>" not in text_of(viewer.get(f"/agents/{agent.wire_id}/"))


def test_it_shows_older_messages(operator: Client) -> None:
    agent = make_agent()
    for number in range(70):
        make_message(default_of(agent), f"message number {number}.")
    page = text_of(operator.get(f"/agents/{agent.wire_id}/"))
    assert "message number 69." in page
    assert "message number 9." not in page
    above = page.partition("?above=")[2].partition('"')[0]
    assert "message number 9." in text_of(operator.get(f"/agents/{agent.wire_id}/?above={above}"))


def test_it_shows_in_which_conversation_a_call_waits(operator: Client) -> None:
    call = waiting_call()
    for _ in range(25):
        Conversation.objects.create(agent=call.agent)
    page = text_of(operator.get(f"/agents/{call.agent.wire_id}/"))
    shown = page.index("1 waiting</span>")
    assert f"?conversation={call.conversation.wire_id}" in page[:shown]
    assert page[:shown].count("?conversation=") == 1
    for reason, words in (("requires_approval", "asked a person"), ("a_new_one", "a new one")):
        Agent.objects.filter(pk=call.agent_id).update(last_stop_reason=reason)
        assert words in text_of(operator.get("/agents/"))


def test_it_switches_approval(builder: Client) -> None:
    agent, tool = make_agent(), make_tool()
    agent.tools.add(tool)
    path = f"/agents/{agent.wire_id}/approval/"
    for required, words in (("yes", "Stop asking"), ("no", "Ask a person")):
        page = text_of(builder.post(path, {"tool": tool.name, "required": required}, follow=True))
        assert words in page
        agent.refresh_from_db()
        assert rules.requires_approval(rules.parse_rules(agent.tool_rules), tool.name) is (required == "yes")


def test_it_changes_memory_unless_it_changed_meanwhile(builder: Client, viewer: Client) -> None:
    agent = make_agent()
    block = with_block(agent)
    path = f"/agents/{agent.wire_id}/blocks/{block.wire_id}/"
    assert "Likes tea." in text_of(viewer.get(path))
    assert viewer.post(f"{path}edit/", {"value": "x", "version": "1"}).status_code == 403
    assert builder.post(f"{path}edit/", {"value": "Likes\r\ncoffee.", "version": "1"}).status_code == 302
    block.refresh_from_db()
    assert (block.value, block.version) == ("Likes\ncoffee.", 2)
    stale = builder.post(f"{path}edit/", {"value": "my own text", "version": "1"})
    assert stale.status_code == 409
    assert "my own text" in text_of(stale)
    too_long = builder.post(f"{path}edit/", {"value": "x" * 100_001, "version": "2"})
    assert too_long.status_code == 422


def test_it_shows_a_run_with_its_steps_and_errors(operator: Client) -> None:
    conversation = default_of(make_agent())
    error = {"type": "llm_error", "message": "Overloaded.", "detail": "529"}
    run = make_run(conversation, RunStatus.FAILED, error=error, input_tokens=1200, output_tokens=34)
    make_step(run, 0, model="claude-x", input_tokens=1200, output_tokens=34)
    make_message(conversation, "what I asked", run=run)
    page = text_of(operator.get(f"/runs/{run.wire_id}/"))
    for words in ("Failed", "Overloaded.", "529", "claude-x", "1200 in, 34 out", "what I asked"):
        assert words in page


def test_it_cancels_a_run(operator: Client, viewer: Client) -> None:
    call = waiting_call()
    path = f"/runs/{call.turn.wire_id}/cancel/"
    assert viewer.post(path).status_code == 403
    assert "The run was cancelled." in text_of(operator.post(path, follow=True))
    call.refresh_from_db()
    assert not call.waiting


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"])
def test_it_returns_to_its_own_pages_only(operator: Client, back: str) -> None:
    call = waiting_call()
    response = operator.post(f"/runs/{call.turn.wire_id}/cancel/", {"back": back})
    assert response["Location"] == f"/runs/{call.turn.wire_id}/"


TREATMENT = {
    "risk": "high",
    "expires_after": "30",
    "expire_action": "pause",
    "on_interrupt": "ask",
    "secret_fields": "a\nb",
    "network_hosts": "api.example.com\n*.example.org:8443",
    "default_requires_approval": "on",
}


def test_it_changes_how_a_tool_is_treated(builder: Client) -> None:
    tool = make_tool()
    response = builder.post(f"/tools/{tool.wire_id}/", TREATMENT)
    assert response.status_code == 302
    tool = Tool.objects.get(pk=tool.pk)
    assert (tool.risk, tool.expires_after, tool.expire_action, tool.on_interrupt) == ("high", 30, "pause", "ask")
    assert (tool.secret_fields, tool.network_hosts) == (["a", "b"], ["api.example.com", "*.example.org:8443"])
    assert tool.default_requires_approval is True
    builder.post(f"/tools/{tool.wire_id}/", {**TREATMENT, "expires_after": ""})
    assert Tool.objects.get(pk=tool.pk).expires_after is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"risk": "none"},
        {"expires_after": "-1"},
        {"expires_after": "x"},
        {"network_hosts": "http://a/b"},
        {"expire_action": ""},
    ],
)
def test_it_refuses_treatments_that_make_no_sense(builder: Client, wrong: dict[str, str]) -> None:
    tool = make_tool()
    response = builder.post(f"/tools/{tool.wire_id}/", {**TREATMENT, **wrong})
    assert response.status_code == 422
    assert "Nothing was saved" in text_of(response)
    assert Tool.objects.get(pk=tool.pk).risk == "medium"


def test_it_lets_only_builders_change_tools(operator: Client) -> None:
    tool = make_tool()
    assert "Your role can look at this, not change it." in text_of(operator.get(f"/tools/{tool.wire_id}/"))
    assert operator.post(f"/tools/{tool.wire_id}/", TREATMENT).status_code == 403
    assert Tool.objects.get(pk=tool.pk).risk == "medium"
