"""What belongs to agents, read for many of them at once in a bounded number of reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from django.db.models import prefetch_related_objects

from agents.models import (
    AgentBlock,
    AgentTag,
    AgentTool,
    AgentVariable,
    Block,
    Conversation,
    Message,
    MessageContext,
    ToolCall,
)
from agents.models.toolcall import WAITING
from agents.wire.messages import request_for
from lettaweb.lib.statements import PreparedMany, PreparedManyValues
from tools.models import Row, Tool

Wire = dict[str, Any]
R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Belongings:
    """What belongs to agents, by their primary key; an empty list for one that has none."""

    tags: Mapping[int, list[str]]
    variables: Mapping[int, list[AgentVariable]]
    tools: Mapping[int, list[Tool]]
    blocks: Mapping[int, list[Block]]
    message_ids: Mapping[int, list[str]]
    pending: Mapping[int, Wire]


_tags = PreparedManyValues(
    lambda keys: AgentTag.objects.filter(agent__in=keys).order_by("id").values_list("agent_id", "tag")
)
_variables = PreparedMany(lambda keys: AgentVariable.objects.filter(agent__in=keys).order_by("id"))
_tool_links = PreparedManyValues(
    lambda keys: AgentTool.objects.filter(agent__in=keys).order_by("id").values_list("agent_id", "tool_id")
)
_tools = PreparedMany(lambda keys: Tool.objects.filter(pk__in=keys).order_by())
_block_links = PreparedManyValues(
    lambda keys: AgentBlock.objects.filter(agent__in=keys).order_by("id").values_list("agent_id", "block_id")
)
_blocks = PreparedMany(lambda keys: Block.objects.filter(pk__in=keys))
_conversations = PreparedManyValues(
    lambda keys: Conversation.objects.filter(agent__in=keys, is_default=True).values_list("pk", "agent_id")
)
# Both conditions, and no order: then the index of what is in context serves, however long the histories are.
_in_context = PreparedManyValues(
    lambda keys: Message.objects.filter(
        conversation__in=keys, context__gt=MessageContext.OUT, context=MessageContext.IN
    ).values_list("id", "conversation_id", "uuid")
)
_waiting = PreparedMany(
    lambda keys: ToolCall.objects.filter(agent__in=keys, conversation__is_default=True, state__in=WAITING).order_by(
        "id"
    )
)


def belongings(agents: Sequence[int]) -> Belongings:
    """What belongs to the agents with these keys."""
    return Belongings(
        tags=_grouped(_tags(agents)),
        variables=_grouped((row.agent_id, row) for row in _variables(agents)),
        tools=_linked(_tool_links(agents), _tools),
        blocks=_linked(_block_links(agents), _blocks),
        message_ids=_message_ids(agents),
        pending=_pending(agents),
    )


def _grouped(pairs: Iterable[Sequence[Any]]) -> Mapping[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for owner, value in pairs:
        found[owner].append(value)
    return found


def _linked(links: Sequence[Sequence[int]], read: PreparedMany[R]) -> Mapping[int, list[R]]:
    """Rows by the agents that they are attached to; one that many have is read once."""
    rows = {row.pk: row for row in read(list({key for _, key in links}))}
    return _grouped((owner, rows[key]) for owner, key in links if key in rows)


def _message_ids(agents: Sequence[int]) -> Mapping[int, list[str]]:
    """The ids of what is in context in the agents' default conversations, oldest first."""
    owners: dict[int, int] = {found[0]: found[1] for found in _conversations(agents)}
    messages: list[Any] = sorted(_in_context(list(owners)), key=itemgetter(0))
    return _grouped((owners[conversation], f"message-{uuid}") for _, conversation, uuid in messages)


def _pending(agents: Sequence[int]) -> dict[int, Wire]:
    """The approval request that waits in an agent's default conversation."""
    calls = _waiting(agents)
    prefetch_related_objects(calls, "message__step", "message__run")
    return {owner: _request(rows) for owner, rows in _grouped((call.agent_id, call) for call in calls).items()}


def _request(rows: Sequence[ToolCall]) -> Wire:
    message = rows[-1].message
    return request_for(message, [row for row in rows if row.message_id == message.pk])
