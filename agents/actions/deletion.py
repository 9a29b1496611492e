"""The end of an agent. What it shares stays, what was made for it alone goes."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from agents.actions.cancel import cancel_agent
from agents.loop.course import lock
from agents.models import Agent, Block, Conversation, Message, Run, Step, ToolCall
from agents.models.run import ACTIVE
from lettaweb.lib.problems import Problem
from tools.policies import Actor

AT_ONCE = 200  # rows of one write: no transaction holds the writer long
TRIES = 5


def delete_agent(agent: Agent, actor: Actor) -> None:
    """Cancel what runs or waits, then delete the agent with its conversations, runs and messages.

    A block that another agent has stays; so does one that was made on its own (POST /v1/blocks/). A block
    that came with the agent's creation (``memory_blocks``) and that nobody else has is deleted. A large
    history goes in pieces. Raises a :class:`Problem` 409 when new runs keep coming.
    """
    for _ in range(TRIES):
        cancel_agent(agent, actor)
        _drop_history(agent)
        if _dropped(agent):
            return
    raise Problem(409, f"CONFLICT: agent {agent.wire_id} is busy; it was not deleted")


def _drop_history(agent: Agent) -> None:
    """Delete what is over, piece by piece, children before their parents."""
    _drop(ToolCall.objects.filter(agent=agent))
    _drop(Message.objects.filter(agent=agent))
    _drop(Step.objects.filter(agent=agent).exclude(run__status__in=ACTIVE))
    _drop(Run.objects.filter(agent=agent).exclude(status__in=ACTIVE), at_once=20)


def _drop(rows: QuerySet, at_once: int = AT_ONCE) -> None:  # type: ignore[type-arg]
    while keys := list(rows.order_by("-pk").values_list("pk", flat=True)[:at_once]):
        rows.model._default_manager.filter(pk__in=keys).delete()


def _dropped(agent: Agent) -> bool:
    """Delete the agent's row and what is left of it, unless a run began meanwhile."""
    with transaction.atomic():
        for pk in Conversation.objects.filter(agent=agent).order_by("pk").values_list("pk", flat=True):
            lock(pk)
        if Run.objects.filter(agent=agent, status__in=ACTIVE).exists():
            return False
        orphans = _made_for(agent)
        agent.delete()
        Block.objects.filter(pk__in=orphans).delete()
    return True


def _made_for(agent: Agent) -> list[int]:
    """The blocks that came with this agent and that no other agent has."""
    mine = Block.objects.filter(agentblock__agent=agent).exclude(agents__in=Agent.objects.exclude(pk=agent.pk))
    return [block.pk for block in mine if (block.extra or {}).get("born_with") == agent.wire_id]
