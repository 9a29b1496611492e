"""Make a job: its members are stored piece by piece, and only then it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.models import Agent
from batches.models import BatchJob, BatchMember, JobStatus, MemberState, Phase
from batches.poll.wish import wake
from lettaweb.lib.ids import wire_id
from lettaweb.lib.problems import Problem

AT_ONCE = 200  # rows of one write


@dataclass(frozen=True, slots=True)
class NewMember:
    """What one agent is asked: ``inputs`` are messages (role, parts, fields), ``options`` those of the run."""

    agent: UUID
    inputs: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A job to be made. ``retry_max``: how often a request goes again whose failure passes."""

    members: Sequence[NewMember]
    callback_url: str | None = None
    retry_max: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


def create(wanted: NewBatch, actor: Any) -> BatchJob:
    """Store a job and have it begun at once; a :class:`Problem` 404 for an agent that is not there."""
    agents = _agents([member.agent for member in wanted.members])
    job = BatchJob.objects.create(
        callback_url=wanted.callback_url,
        retry_max=wanted.retry_max,
        total=len(wanted.members),
        metadata={**wanted.metadata, "job_type": "batch_messages"},
        created_by=actor,
    )
    members = wanted.members
    for first in range(0, len(members), AT_ONCE):
        with transaction.atomic():
            BatchMember.objects.bulk_create(_rows(job, members, agents, first))
            if first + AT_ONCE >= len(members):
                _start(job)
    return job


def _rows(job: BatchJob, members: Sequence[NewMember], agents: Mapping[UUID, int], first: int) -> list[BatchMember]:
    """The rows of the members from ``first`` on that are written at once."""
    now = timezone.now()
    return [
        BatchMember(
            job=job,
            position=place,
            agent_id=agents[member.agent],
            agent_uuid=member.agent,
            state=MemberState.WAITING,
            request={"inputs": [dict(given) for given in member.inputs], "options": dict(member.options)},
            since=now,
        )
        for place, member in enumerate(members[first : first + AT_ONCE], first)
    ]


def _agents(uuids: Sequence[UUID]) -> dict[UUID, int]:
    found: dict[UUID, int] = {}
    wanted = list(dict.fromkeys(uuids))
    for first in range(0, len(wanted), 500):
        rows = Agent.objects.filter(uuid__in=wanted[first : first + 500])
        found.update(rows.values_list("uuid", "pk"))
    for uuid in wanted:
        if uuid not in found:
            raise Problem(404, f"Agent with ID {wire_id(Agent.PREFIX, uuid)} not found")
    return found


def _start(job: BatchJob) -> None:
    job.status, job.phase = JobStatus.RUNNING, Phase.PREPARING
    job.save(update_fields=["status", "phase", "updated_at"])
    wake()
