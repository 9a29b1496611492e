"""Members of a job, their items (one per model call), and results that are not stepped yet."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from agents.models import Agent, Run
from batches.models.job import BatchJob, Spent
from batches.models.llm import LLMBatch
from tools.models import Row, Stored


class MemberState(models.TextChoices):
    """waiting: not begun. ready: to be asked for. in_flight: asked. acting: its tools run. parked: people decide."""

    WAITING = "waiting"
    READY = "ready"
    ACTING = "acting"
    IN_FLIGHT = "in_flight"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class BatchMember(Stored):
    """One agent's part in a job, from its request to its end.

    ``request`` holds inputs and options until the run is made. ``turn`` is the id of its first run. ``steps``
    counts its items.
    """

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(BatchJob, models.CASCADE, related_name="members", db_index=False)
    position = models.PositiveIntegerField()
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, related_name="+")
    agent_uuid = models.UUIDField()
    state = models.CharField(max_length=12, choices=MemberState.choices, default=MemberState.WAITING)
    request = models.JSONField(null=True, blank=True)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    turn = models.BigIntegerField(null=True, blank=True)
    steps = models.PositiveIntegerField(default=0)
    retries = models.PositiveSmallIntegerField(default=0)
    since = models.DateTimeField(help_text="when it came into its state")
    error = models.JSONField(null=True, blank=True, help_text="type, message")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "position"], name="member_position_once")]
        indexes = [models.Index(fields=["job", "state", "id"])]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.position}"


class RequestStatus(models.TextChoices):
    CREATED = "created"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class StepState(models.TextChoices):
    PAUSED = "paused"
    RESUMED = "resumed"
    COMPLETED = "completed"


class BatchItem(Row, Spent):
    """One model call of a member. Its uuid is its name at the provider and on its messages.

    ``step_state`` is its own copy of where the member stood: step_number, tool_rules_solver {tool_rules,
    tool_call_history}. ``tools`` are the names on offer.
    """

    PREFIX = "batch_item"

    job = models.ForeignKey(BatchJob, models.CASCADE, related_name="items", db_index=False)
    member = models.ForeignKey(BatchMember, models.CASCADE, related_name="items", db_index=False)
    llm_batch = models.ForeignKey(
        LLMBatch, models.SET_NULL, null=True, blank=True, related_name="items", db_index=False
    )
    agent_uuid = models.UUIDField()
    number = models.PositiveIntegerField(default=0)
    request_status = models.CharField(max_length=12, choices=RequestStatus.choices, default=RequestStatus.CREATED)
    step_status = models.CharField(max_length=12, choices=StepState.choices, default=StepState.PAUSED)
    step_state = models.JSONField(default=dict)
    tools = models.JSONField(default=list)
    error = models.JSONField(null=True, blank=True, help_text="type, message, detail")
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = [
            models.Index(fields=["job", "id"]),
            models.Index(fields=["member", "id"]),
            models.Index(fields=["llm_batch", "id"]),
        ]

    def __str__(self) -> str:
        return self.wire_id


class StagedResult(Stored):
    """A raw line of a result file, kept until its item is stepped."""

    id = models.BigAutoField(primary_key=True)
    llm_batch = models.ForeignKey(LLMBatch, models.CASCADE, related_name="staged", db_index=False)
    item = models.OneToOneField(BatchItem, models.CASCADE, related_name="+")
    line = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["llm_batch", "id"])]

    def __str__(self) -> str:
        return f"{self.llm_batch_id}: {self.item_id}"


OPEN_MEMBERS = (
    MemberState.WAITING,
    MemberState.READY,
    MemberState.ACTING,
    MemberState.IN_FLIGHT,
    MemberState.PARKED,
)
STILL_OPEN = Q(state__in=OPEN_MEMBERS)
