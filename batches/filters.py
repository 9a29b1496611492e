"""Which jobs, items and messages a list shows."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import QueryDict

from agents.actions.desk.find import rows as find_rows
from agents.models import Agent, Message, ToolCall
from agents.models.toolcall import WAITING
from batches.models import OPEN_JOBS, BatchItem, BatchJob, BatchMember, LLMBatch, MemberState, RequestStatus
from lettaweb.lib import ids
from lettaweb.lib.bodies import flag
from lettaweb.lib.paging import choice, word
from lettaweb.lib.problems import Problem


def job(wire: str) -> BatchJob:
    """The job ``wire``; 422 for what is no job's id, 404 for one that is not there."""
    found = jobs().filter(uuid=ids.parse(BatchJob.PREFIX, wire)).first()
    if found is None:
        raise Problem(404, f"Job with ID {wire} not found")
    return found


def jobs() -> QuerySet[BatchJob]:
    return BatchJob.objects.filter(deleted_at=None)


def jobs_of(query: QueryDict, *, active: bool = False) -> QuerySet[BatchJob]:
    """The jobs that ``query`` asks for; nothing here has a source."""
    rows = jobs()
    if word(query, "source_id"):
        return rows.none()
    return rows.filter(status__in=OPEN_JOBS) if active or flag(query, "active") else rows


def messages_of(query: QueryDict, owner: BatchJob) -> QuerySet[Message]:
    """The messages of a job's items, of one agent where the query names one."""
    items = BatchItem.objects.filter(job=owner)
    if agent := word(query, "agent_id"):
        items = items.filter(agent_uuid=ids.parse(Agent.PREFIX, agent))
    rows = Message.objects.filter(batch_item__in=items.values("uuid")).defer("search_text")
    return rows.select_related("agent", "conversation", "run", "step")


def items_of(query: QueryDict, owner: BatchJob) -> QuerySet[BatchItem]:
    """The items of a job: of an LLM batch, of an agent, in a state."""
    rows = BatchItem.objects.filter(job=owner).select_related("member__agent", "member__run", "llm_batch")
    if llm := word(query, "llm_batch_id"):
        rows = rows.filter(llm_batch__in=LLMBatch.objects.filter(uuid=ids.parse(LLMBatch.PREFIX, llm)))
    if agent := word(query, "agent_id"):
        rows = rows.filter(agent_uuid=ids.parse(Agent.PREFIX, agent))
    if state := word(query, "state"):
        rows = rows.filter(member__state=state)
    status = choice(query, "request_status", ("", *RequestStatus.values), "")
    return rows.filter(request_status=status) if status else rows


def waiting_calls(owner: BatchJob) -> QuerySet[ToolCall]:
    """The calls of a job's members that wait for people."""
    turns = BatchMember.objects.filter(job=owner, state=MemberState.PARKED).values("turn")
    return find_rows().filter(turn__in=turns, state__in=WAITING)
