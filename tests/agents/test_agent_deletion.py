"""Agents deleted through the REST API: with their history, without what others share; and messages reset."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, Block, Conversation, Message, Run, RunStatus, Step, ToolCall
from agents.models.toolcall import Decision
from tests.agents import factories as make
from tests.rest import UNKNOWN, delete, get, new_agent, new_block, new_tool, patch
from tests.tools.sources import ROLL_DICE

pytestmark = pytest.mark.django_db


def row_of(agent: dict[str, Any]) -> Agent:
    return Agent.objects.get(uuid=agent["id"].removeprefix("agent-"))


def with_history(agent: dict[str, Any], count: int = 3) -> Conversation:
    """Some messages, a finished run and a call that waits."""
    conversation = make.default_of(row_of(agent))
    make.make_messages(conversation, count)
    run = make.make_run(conversation, stop_reason="requires_approval")
    make.make_call(make.make_answer(run, [make.call_part("call_1", gated=True)]), "call_1")
    return conversation


def test_it_deletes_an_agent_with_everything_of_its_own() -> None:
    kept = new_agent(name="kept")
    with_history(kept)
    agent = new_agent(tags=["t"], secrets={"K": "v"}, tool_ids=[new_tool(ROLL_DICE)["id"]])
    with_history(agent)
    make.make_conversation(row_of(agent))
    answer = delete(f"agents/{agent['id']}")
    assert answer == {"message": f"Agent id={agent['id']} successfully deleted"}
    assert get(f"agents/{agent['id']}", expect=404)
    delete(f"agents/{agent['id']}", expect=404)
    left = row_of(kept).pk
    for model in (Conversation, Message, Run, Step, ToolCall):
        assert set(model.objects.values_list("agent", flat=True)) == {left}
    assert get("tools/count", name="roll_dice_tool") == 1
    assert get(f"agents/{kept['id']}")["pending_approval"]


def test_it_deletes_a_large_history_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.actions.deletion.AT_ONCE", 3)
    agent = new_agent()
    with_history(agent, 20)
    delete(f"agents/{agent['id']}")
    assert not Message.objects.exists()


@pytest.mark.parametrize("status", [RunStatus.CREATED, RunStatus.RUNNING])
def test_it_cancels_an_active_run_first(status: str) -> None:
    agent = new_agent()
    make.make_run(make.default_of(row_of(agent)), status)
    delete(f"agents/{agent['id']}")
    assert not Run.objects.exists()
    assert not Decision.objects.exists()


def test_it_keeps_shared_and_lone_blocks() -> None:
    shared, lone = new_block("shared"), new_block("lone")
    other = new_agent(block_ids=[shared["id"]])
    private = {"label": "private", "value": "x"}
    agent = new_agent(block_ids=[shared["id"], lone["id"]], memory_blocks=[private, {"label": "lent", "value": "y"}])
    lent = next(block for block in agent["blocks"] if block["label"] == "lent")
    patch(f"agents/{other['id']}/core-memory/blocks/attach/{lent['id']}")
    delete(f"agents/{agent['id']}")
    assert set(Block.objects.values_list("label", flat=True)) == {"shared", "lone", "lent"}
    assert {block["label"] for block in get(f"agents/{other['id']}")["blocks"]} == {"shared", "lent"}


@pytest.mark.parametrize("body", [{"add_default_initial_messages": False}, None, {}])
def test_it_resets_messages(body: Any) -> None:
    agent = new_agent()
    with_history(agent)
    after = patch(f"agents/{agent['id']}/reset-messages", body)
    assert after["message_ids"] == agent["message_ids"]
    assert after["pending_approval"] is None
    assert [row.role for row in Message.objects.all()] == ["system"]


@pytest.mark.parametrize(
    ("body", "params"), [({"add_default_initial_messages": True}, {}), (None, {"add_default_initial_messages": True})]
)
def test_it_brings_the_first_messages_back(body: Any, params: dict[str, Any]) -> None:
    agent = new_agent(agent_type="memgpt_agent", include_base_tools=True)
    with_history(agent)
    after = patch(f"agents/{agent['id']}/reset-messages", body, **params)
    assert [row.role for row in Message.objects.order_by("id")] == ["system", "assistant", "tool", "user"]
    assert after["message_ids"][0] == agent["message_ids"][0]
    assert len(after["message_ids"]) == 4


def test_it_refuses_unknown_agents() -> None:
    delete(f"agents/agent-{UNKNOWN}", expect=404)
    delete("agents/x", expect=422)
    patch(f"agents/agent-{UNKNOWN}/reset-messages", {}, expect=404)
