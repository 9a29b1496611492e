"""The conversation that a new agent begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from agents.context import estimate_tokens
from agents.memory.boot import MessageSpec, boot_messages
from agents.memory.builtins import search_text
from agents.memory.compile import compiled_prompt
from agents.models import Agent, Conversation, Message, MessageRole
from tools import rules


def prompt_of(agent: Agent) -> str:
    """The agent's system prompt as it is compiled now."""
    described = rules.describe(rules.parse_rules(agent.tool_rules or []))
    return compiled_prompt(agent, rules_text=described)


def begin(agent: Agent, initial: Sequence[Mapping[str, Any]] | None = None) -> Conversation:
    """Make the agent's default conversation with its first messages, in the caller's transaction.

    ``initial`` (role user or assistant, content text) stands in the place of those of the agent's kind.
    """
    conversation = Conversation.objects.create(agent=agent, is_default=True)
    now = timezone.now()
    store(conversation, first_messages(agent, now, initial), now=now)
    return conversation


def first_messages(
    agent: Agent, now: datetime, initial: Sequence[Mapping[str, Any]] | None = None
) -> list[MessageSpec]:
    """The messages that a conversation of ``agent`` begins with, its system message first."""
    return boot_messages(agent.agent_type, system=prompt_of(agent), now=now, timezone=agent.timezone, initial=initial)


def store(conversation: Conversation, specs: Iterable[MessageSpec], *, now: datetime) -> None:
    """Store messages in their order, a microsecond apart."""
    Message.objects.bulk_create(
        [
            Message(
                conversation=conversation,
                agent=conversation.agent,
                role=MessageRole(spec.role),
                parts=[dict(part) for part in spec.parts],
                name=spec.name,
                created_at=now + timedelta(microseconds=place),
                tokens=estimate_tokens([dict(part) for part in spec.parts]),
                search_text=search_text(spec.role, [dict(part) for part in spec.parts]),
            )
            for place, spec in enumerate(specs)
        ]
    )
