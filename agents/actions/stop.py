"""Cancel what runs or waits: which conversations are meant, and what became of their runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from agents.actions.cancel import cancel_conversation
from agents.models import Agent, Conversation, Run, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem

Outcomes = dict[str, str]


def cancel_runs(owner: Agent, run_ids: Sequence[str] | None, actor: Any) -> Outcomes:
    """Cancel the runs ``run_ids`` of ``owner``, or all that is open of it when none are named.

    A run that is over and waits for nobody is left out of the answer. Raises a :class:`Problem` 404 for
    a run that is not the agent's.
    """
    open_ = _open_runs(owner)
    if run_ids:
        named = [_named(owner, wire) for wire in run_ids]
        open_ = [run for run in open_ if run.pk in named]
    conversations = Conversation.objects.filter(pk__in={run.conversation_id for run in open_})
    return cancel_all(conversations.select_related("agent"), actor)


def cancel_all(conversations: Iterable[Conversation], actor: Any) -> Outcomes:
    """Cancel what is open in each conversation: what became of its run, by wire id; empty when nothing was."""
    runs = [cancel_conversation(conversation, actor) for conversation in conversations]
    return {run.wire_id: str(run.status) for run in runs if run is not None}


def _open_runs(owner: Agent) -> list[Run]:
    """The runs that are active or whose calls wait for a person."""
    waiting = ToolCall.objects.filter(agent=owner, state__in=WAITING).values("step__run")
    return list(Run.objects.filter(Q(status__in=ACTIVE) | Q(pk__in=waiting), agent=owner).order_by("pk"))


def _named(owner: Agent, wire: str) -> int:
    found = Run.objects.filter(uuid=ids.parse("run", wire), agent=owner).values_list("pk", flat=True).first()
    if found is None:
        raise Problem(404, f"Run with ID {wire} not found")
    return found
