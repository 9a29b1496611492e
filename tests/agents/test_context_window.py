"""What fills the context window, and the system prompt compiled on demand."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, Message, MessageContext
from tests.agents import factories as make
from tests.rest import get, new_agent, new_tool, patch, post
from tests.tools.sources import ROLL_DICE

pytestmark = pytest.mark.django_db

FIELDS = {
    *("context_window_size_max", "context_window_size_current", "num_messages", "num_archival_memory"),
    *("num_recall_memory", "num_tokens_external_memory_summary", "external_memory_summary", "num_tokens_system"),
    *("system_prompt", "num_tokens_core_memory", "core_memory", "num_tokens_memory_filesystem"),
    *("memory_filesystem", "num_tokens_tool_usage_rules", "tool_usage_rules", "num_tokens_directories"),
    *("directories", "num_tokens_summary_memory", "summary_memory", "num_tokens_functions_definitions"),
    *("functions_definitions", "num_tokens_messages", "messages"),
}
MESSAGE_FIELDS = {
    *("created_by_id", "last_updated_by_id", "created_at", "updated_at", "id", "agent_id", "model", "role"),
    *("content", "name", "tool_calls", "tool_call_id", "step_id", "run_id", "otid", "tool_returns", "group_id"),
    *("sender_id", "batch_item_id", "conversation_id", "is_err", "approval_request_id", "approve"),
    *("denial_reason", "approvals"),
}


def total(shown: dict[str, Any]) -> int:
    return sum(value for name, value in shown.items() if name.startswith("num_tokens_"))


def test_it_tells_what_fills_the_window() -> None:
    tool = new_tool(ROLL_DICE)
    rules = [{"tool_name": "roll_dice_tool", "type": "run_first"}]
    blocks = [{"label": "human", "value": "Name: Matt"}]
    agent = new_agent(tool_ids=[tool["id"]], tool_rules=rules, memory_blocks=blocks, context_window_limit=9000)
    shown = get(f"agents/{agent['id']}/context")
    assert shown.keys() == FIELDS
    assert shown["context_window_size_max"] == 9000
    assert shown["context_window_size_current"] == total(shown) > 0
    assert (shown["num_messages"], shown["num_recall_memory"], shown["num_tokens_messages"]) == (1, 1, 0)
    assert "Name: Matt" in shown["core_memory"]
    assert "roll_dice_tool" in shown["tool_usage_rules"]
    assert shown["functions_definitions"][0]["function"]["name"] == "roll_dice_tool"
    assert [message.keys() for message in shown["messages"]] == [MESSAGE_FIELDS]


def test_it_counts_what_is_in_context_only() -> None:
    agent = new_agent()
    conversation = make.default_of(Agent.objects.get())
    make.make_message(conversation, "word " * 100)
    make.make_message(conversation, "gone " * 1000, context=MessageContext.OUT)
    shown = get(f"agents/{agent['id']}/context/")
    assert (shown["num_messages"], shown["num_recall_memory"]) == (2, 3)
    assert 50 < shown["num_tokens_messages"] < 500
    assert shown["context_window_size_current"] == total(shown)


def test_it_compiles_the_prompt_anew() -> None:
    agent = new_agent(system="First.", memory_blocks=[{"label": "human", "value": "old"}])
    block = agent["blocks"][0]["id"]
    patch(f"blocks/{block}", {"value": "brand new"})
    patch(f"agents/{agent['id']}", {"system": "Second."})
    dry = post(f"agents/{agent['id']}/recompile", dry_run=True)
    assert dry.startswith("Second.")
    assert "brand new" in dry
    assert Message.objects.get().parts[0]["text"].startswith("First.")
    assert post(f"agents/{agent['id']}/system-prompt/recompile") == dry
    assert Message.objects.get().parts[0]["text"] == dry
    assert get(f"agents/{agent['id']}")["message_ids"] == agent["message_ids"]
