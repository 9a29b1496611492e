"""A decision that comes again: it is answered from the rows, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.actions.begin import Started, Wanted, active_run, create_run
from agents.actions.requests import MessageRequest
from agents.models import Conversation, Message, MessageRole, Run, RunStatus, ToolCall
from lettaweb.lib import ids

if TYPE_CHECKING:
    from agents.actions.decide import Sender


def already_answered(
    conversation: Conversation, request: MessageRequest, sender: Sender, waiting: Sequence[ToolCall]
) -> Started | None:
    """The run that answered this very decision before; None when it is not a repetition.

    While that run works the caller joins it; a run that failed at the model goes on in a new one.
    """
    calls = _settled(conversation, request, waiting)
    if not calls:
        return None
    running = active_run(conversation)
    if running is not None and running.turn_id == calls[0].turn_id:
        return Started(running, mine=False, fresh=False)
    answered = _answering_run(calls[0])
    if answered is None:
        return None
    if answered.status == RunStatus.FAILED and running is None and _is_last(conversation, answered):
        return _try_again(conversation, answered, request, sender)
    return Started(answered, mine=False, fresh=False)


def _settled(conversation: Conversation, request: MessageRequest, waiting: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that the request speaks of, when all of them were decided before and in the same way."""
    from agents.actions.decide import same_decision

    assert request.approval is not None
    verdicts = {verdict.call_id: verdict for verdict in request.approval.verdicts}
    rows = ToolCall.objects.filter(conversation=conversation, gated=True)
    if request.approval.legacy:
        request_id = ids.find("message", next(iter(verdicts)))
        calls = list(rows.filter(message__uuid=request_id).order_by("id")) if request_id else []
        verdict = request.approval.verdicts[0]
        fits = len(calls) == 1 and not calls[0].waiting and same_decision(calls[0], verdict)
        return calls if fits else []
    calls = list(rows.filter(call_id__in=verdicts).order_by("id"))
    mixed = len(calls) != len(verdicts) or any(call.waiting for call in calls)
    if mixed or not all(same_decision(call, verdicts[call.call_id]) for call in calls):
        return []
    open_set = waiting[0].message_id if waiting else None
    return [] if any(call.message_id == open_set for call in calls) else calls


def _answering_run(call: ToolCall) -> Run | None:
    """The run that carried the decision out: it holds the results of the call's step."""
    row = (
        Message.objects.filter(step_id=call.step_id, role=MessageRole.TOOL).select_related("run").order_by("id").first()
    )
    return row.run if row else None


def _is_last(conversation: Conversation, run: Run) -> bool:
    return not Run.objects.filter(conversation=conversation, pk__gt=run.pk).exists()


def _try_again(conversation: Conversation, failed: Run, request: MessageRequest, sender: Sender) -> Started:
    wanted = Wanted(
        options={**failed.options, **request.options, "resumes": True},
        background=request.background,
        owner=sender.owner,
        actor=sender.user,
        driver=failed.driver,
        turn_id=failed.turn_id,
        metadata=failed.metadata,
    )
    run = create_run(conversation, wanted)
    return Started(run, mine=run.owner_id is not None)
