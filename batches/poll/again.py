"""Items that were not processed go back: their members are ready again, and the loop takes up their open steps."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from agents.models import Run
from batches.models import BatchItem, BatchMember, LLMBatch, LLMState, MemberState, RequestStatus
from batches.poll.spool import remove

AT_ONCE = 200


def unmake(llm: LLMBatch, state: str = LLMState.FAILED) -> None:
    """Take all unanswered items out of an LLM batch that no provider works on, and close it."""
    while keys := list(unanswered(llm).order_by("id").values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            take_back(keys)
    now = timezone.now()
    if llm.provider_batch_id or llm.items.exists():
        LLMBatch.objects.filter(pk=llm.pk).update(status=state, ended_at=now, updated_at=now)
    else:
        LLMBatch.objects.filter(pk=llm.pk).delete()  # nothing of it was ever sent
    remove(llm.uuid)


def unanswered(llm: LLMBatch) -> QuerySet[BatchItem]:
    return BatchItem.objects.filter(llm_batch=llm, answered_at=None)


def take_back(item_keys: Sequence[int]) -> None:
    """The items leave their LLM batch and go with a later one; in the caller's transaction."""
    if not item_keys:
        return
    now = timezone.now()
    members = BatchMember.objects.filter(items__in=item_keys, state=MemberState.IN_FLIGHT)
    rows = list(members.values_list("pk", "run_id"))
    # A new epoch makes the loop look for the step that is open already.
    Run.objects.filter(pk__in=[run for _, run in rows]).update(epoch=F("epoch") + 1)
    BatchItem.objects.filter(pk__in=item_keys).update(llm_batch=None, updated_at=now)
    BatchMember.objects.filter(pk__in=[pk for pk, _ in rows]).update(state=MemberState.READY, since=now)
    gone = BatchItem.objects.filter(pk__in=item_keys).exclude(member__in=[pk for pk, _ in rows])
    gone.update(request_status=RequestStatus.CANCELLED, answered_at=now)
