"""A cancelled job: what was not sent is dropped, what is at a provider is called back, what was paid for is kept."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.actions.cancel import cancel_conversation
from agents.models import Conversation, Driver
from agents.models.run import ACTIVE
from batches.models import BatchItem, BatchJob, BatchMember, LLMBatch, LLMState, MemberState, RequestStatus
from batches.poll.again import unmake
from batches.poll.cycle import Cycle

DROPPED = (MemberState.WAITING, MemberState.READY, MemberState.ACTING, MemberState.PARKED)
REASON = "The batch was cancelled."
AT_ONCE = 100


def drop(cycle: Cycle, job: BatchJob) -> None:
    """Drop everything of a cancelled job that is not at a provider; live runs stop where they are."""
    unsent = LLMBatch.objects.filter(job=job, status__in=[LLMState.PREPARING, LLMState.CREATED], local=False)
    for llm in unsent.order_by("id"):
        unmake(llm, LLMState.CANCELLED)
    live = Q(state=MemberState.IN_FLIGHT, run__driver=Driver.LIVE, run__status__in=ACTIVE)
    rows = BatchMember.objects.filter(Q(state__in=DROPPED) | live, job=job).select_related("run")
    while not cycle.over and (members := list(rows.order_by("id")[:AT_ONCE])):
        for member in members:
            _drop(job, member)


def _drop(job: BatchJob, member: BatchMember) -> None:
    """One member: its run ends, and with it the calls that wait."""
    with transaction.atomic():
        if member.run_id:
            conversation = Conversation.objects.select_related("agent").filter(runs=member.run_id).first()
            if conversation is not None and _is_its(member, conversation):
                cancel_conversation(conversation, job.created_by, reason=REASON)
        BatchItem.objects.filter(member=member, answered_at=None).update(
            request_status=RequestStatus.CANCELLED, answered_at=timezone.now()
        )
        BatchMember.objects.filter(pk=member.pk).update(state=MemberState.CANCELLED, since=timezone.now())


def _is_its(member: BatchMember, conversation: Conversation) -> bool:
    """Whether what runs or waits in the conversation belongs to the member."""
    last = conversation.runs.order_by("-pk").first()
    return last is not None and member.turn in (last.turn_id, last.pk)
