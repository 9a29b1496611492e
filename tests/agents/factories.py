"""Rows for tests: an agent, its conversations, and a history that a run left behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.events import Batch, Fence
from agents.events.log import insert_deltas
from agents.models import (
    Agent,
    CallKind,
    CallState,
    Conversation,
    Message,
    MessageRole,
    Run,
    RunStatus,
    Step,
    StepStatus,
    ToolCall,
)

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_agent(name: str = "billing", **fields: Any) -> Agent:
    """An agent with its default conversation."""
    made = Agent.objects.create(name=name, model="demo/echo", **fields)
    Conversation.objects.create(agent=made, is_default=True)
    return made


def default_of(agent: Agent) -> Conversation:
    return Conversation.objects.get(agent=agent, is_default=True)


def make_conversation(agent: Agent, **fields: Any) -> Conversation:
    return Conversation.objects.create(agent=agent, **fields)


def make_message(conversation: Conversation, text: str = "hi", *, role: str = "user", **fields: Any) -> Message:
    """A stored message; a minute later than the one before it in all conversations."""
    count = Message.objects.count()
    fields.setdefault("parts", [{"type": "text", "text": text}])
    fields.setdefault("created_at", START + timedelta(minutes=count))
    fields.setdefault("search_text", text.casefold())
    return Message.objects.create(conversation=conversation, agent=conversation.agent, role=role, **fields)


def make_messages(conversation: Conversation, count: int) -> list[Message]:
    """``count`` user messages "m1", "m2", …"""
    return [make_message(conversation, f"m{number}") for number in range(1, count + 1)]


def make_run(conversation: Conversation, status: str = RunStatus.COMPLETED, **fields: Any) -> Run:
    if status == RunStatus.COMPLETED:
        fields.setdefault("stop_reason", "end_turn")
        fields.setdefault("completed_at", START)
    return Run.objects.create(agent=conversation.agent, conversation=conversation, status=status, **fields)


def make_step(run: Run, number: int = 0, **fields: Any) -> Step:
    fields.setdefault("status", StepStatus.SUCCESS)
    fields.setdefault("provider", "anthropic")
    fields.setdefault("model", "claude-sonnet-4-5")
    return Step.objects.create(run=run, agent=run.agent, number=number, **fields)


def call_part(call_id: str, name: str = "refund", *, gated: bool = False) -> dict[str, Any]:
    return {"type": "call", "id": call_id, "name": name, "arguments": "{}", "gated": gated}


def result_part(call_id: str, name: str = "refund", text: str = "done") -> dict[str, Any]:
    return {"type": "result", "id": call_id, "name": name, "status": "success", "text": text}


def make_call(message: Message, call_id: str, *, state: str = CallState.PENDING, **fields: Any) -> ToolCall:
    """The row of a call of ``message`` (which has a step); pending calls wait for a person."""
    step = message.step
    assert step is not None
    fields.setdefault("turn", step.run)
    return ToolCall.objects.create(
        agent=message.agent,
        conversation=message.conversation,
        step=step,
        message=message,
        position=0,
        call_id=call_id,
        name="refund",
        kind=CallKind.SERVER,
        gated=True,
        digest="0" * 64,
        state=state,
        **fields,
    )


def make_answer(run: Run, parts: Sequence[dict[str, Any]], **fields: Any) -> Message:
    """An assistant message of ``run`` with a step of its own."""
    step = make_step(run, Step.objects.filter(run=run).count())
    return make_message(
        run.conversation, role=MessageRole.ASSISTANT, parts=list(parts), run=run, step=step, search_text="", **fields
    )


def write_deltas(fence: Fence, batch: Batch) -> bool:
    """Whether ``batch`` could be written: whether the run is still that of ``fence``."""
    return insert_deltas([(fence, batch)]) == [True]
