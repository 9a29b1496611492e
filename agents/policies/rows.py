"""Rows by their wire id: 422 for an id that cannot be one, 404 for one that is unknown.

One installation is one organisation, so a role decides what may be done and every row may be found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from agents.models import Agent, Conversation, Message, Run, Step
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from lettaweb.lib.statements import Prepared, PreparedByUuid
from tools.models import Row

T = TypeVar("T")

DEFAULT = "default"


def agent(wire: str, rows: QuerySet[Agent] | None = None) -> Agent:
    """The agent ``wire`` from ``rows`` (all)."""
    uuid = ids.parse("agent", wire)
    found = next(iter(_agents(uuid)), None) if rows is None else rows.filter(uuid=uuid).first()
    return _known(found, "Agent", wire)


def named_agent(wire: str) -> Agent:
    """The agent with its names only: enough for a list of what belongs to it."""
    return _known(next(iter(_named_agents(ids.parse("agent", wire))), None), "Agent", wire)


_agents = PreparedByUuid(lambda key: Agent.objects.filter(uuid=key).order_by())
_named_agents = PreparedByUuid(lambda key: Agent.objects.filter(uuid=key).order_by().only("id", "uuid"))


def run(wire: str) -> Run:
    rows = Run.objects.select_related("agent", "conversation__agent")
    return _known(rows.filter(uuid=ids.parse("run", wire)).first(), "Run", wire)


def step(wire: str) -> Step:
    rows = Step.objects.select_related("run", "agent")
    return _known(rows.filter(uuid=ids.parse("step", wire)).first(), "Step", wire)


def conversation(wire: str, agent_id: str = "") -> Conversation:
    """The conversation ``wire``; ``default`` means the default one of the agent ``agent_id``.

    Some clients still say an agent's own id in its place.
    """
    if wire == DEFAULT:
        if not agent_id:
            raise Problem(422, "agent_id is required with the conversation 'default'")
        return default_conversation(agent(agent_id))
    if wire.startswith(f"{Agent.PREFIX}-"):
        return default_conversation(agent(wire))
    rows = Conversation.objects.select_related("agent")
    return _known(rows.filter(uuid=ids.parse("conv", wire)).first(), "Conversation", wire)


def default_conversation(owner: Agent) -> Conversation:
    """The agent's own conversation, made if an agent has none."""
    found = next(iter(_defaults(owner.pk)), None)
    if found is None:
        found, _ = Conversation.objects.get_or_create(agent=owner, is_default=True)
    found.agent = owner
    return found


_defaults = Prepared(lambda key: Conversation.objects.filter(agent=key, is_default=True).order_by())


def keys(model: type[Row], wires: Iterable[str]) -> list[int]:
    """The primary keys of the rows ``wires``; unknown ones are left out.

    A list filtered by such a key is a seek in its index; by the uuid of a joined row it would be sorted.
    """
    uuids = [ids.parse(model.PREFIX, wire) for wire in wires]
    return list(model._default_manager.filter(uuid__in=uuids).values_list("id", flat=True))


def message(wire: str) -> Message:
    """The message ``wire``, or the one that took the place of an earlier attempt with that id."""
    uuid = ids.parse("message", wire)
    rows = Message.objects.select_related("run", "step")
    found = rows.filter(uuid=uuid).first()
    if found is None and (successor := superseded_by(uuid)) is not None:
        found = rows.filter(uuid=successor).first()
    return _known(found, "Message", wire)


def position(cursor: str, rows: QuerySet[Message], place: str) -> int:
    """The place in time of the message ``cursor`` among ``rows``; a 404 that names ``place`` when it is unknown."""
    uuid = ids.find("message", cursor)
    found = _place(rows, uuid)
    if uuid and found is None:
        found = _place(rows, superseded_by(uuid))
    if found is None:
        raise Problem(404, f"No message found with id '{cursor[:80]}' for {place}.")
    return found


def _place(rows: QuerySet[Message], uuid: UUID | None) -> int | None:
    return rows.filter(uuid=uuid).values_list("id", flat=True).first() if uuid else None


def superseded_by(uuid: UUID) -> UUID | None:
    """The message that took the place of the attempt ``uuid``, None when no step knows such an attempt."""
    # Written out, the condition is that of a partial index: only steps that were asked again are read.
    retried = Step.objects.extra(where=["agents_step.attempt > 1"])
    named = retried.annotate(attempts=Cast("superseded", TextField())).filter(attempts__contains=str(uuid))
    successor: UUID | None = named.values_list("message_uuid", flat=True).first()
    return successor


def _known(found: T | None, kind: str, wire: str) -> T:
    if found is None:
        raise Problem(404, f"{kind} with ID {wire} not found")
    return found
