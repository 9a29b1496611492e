"""Runs and their steps, and the processes that own them."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from agents.models.conversation import Conversation
from tools.models import Row


class Process(models.Model):
    """A process that executes runs. It lives as long as its ``beat_at`` is young (database clock)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16)
    host = models.CharField(max_length=255)
    boot_id = models.CharField(max_length=64, blank=True, default="")
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.host}:{self.pid}"


class RunStatus(models.TextChoices):
    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Driver(models.TextChoices):
    LIVE = "live"
    BATCH = "batch"


ACTIVE = (RunStatus.CREATED, RunStatus.RUNNING)


class Run(Row):
    """One stretch of work on a request. ``epoch`` rises with every change of owner: it fences writes.

    ``turn`` is the run that the user's message created (itself for that one). ``options`` hold what the
    request asked for (stream_tokens, client_tools, override_model, max_steps …). ``left`` is what is left
    of max_steps, null for a run that has none of its own.
    """

    PREFIX = "run"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="runs", db_index=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="runs", db_index=False)
    turn = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="turn_runs")
    status = models.CharField(max_length=16, choices=RunStatus.choices, default=RunStatus.CREATED)
    stop_reason = models.CharField(max_length=50, null=True, blank=True)
    driver = models.CharField(max_length=8, choices=Driver.choices, default=Driver.LIVE)
    # No constraint: a process that was held for dead may still write its own id; nobody owns such a run.
    owner = models.ForeignKey(Process, models.SET_NULL, null=True, blank=True, related_name="runs", db_constraint=False)
    epoch = models.PositiveIntegerField(default=0)
    background = models.BooleanField(default=False)
    options = models.JSONField(default=dict)
    metadata = models.JSONField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    ttft_ns = models.PositiveBigIntegerField(null=True, blank=True)
    total_duration_ns = models.PositiveBigIntegerField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True, help_text="type, message, detail")
    callback_url = models.TextField(null=True, blank=True)
    callback_sent_at = models.DateTimeField(null=True, blank=True)
    callback_status_code = models.PositiveIntegerField(null=True, blank=True)
    callback_error = models.TextField(null=True, blank=True)
    steps_count = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    context_tokens = models.PositiveBigIntegerField(default=0)
    events_dropped = models.BooleanField(default=False, help_text="the log was removed by retention")

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(status__in=["created", "running"]), name="one_active_run"
            )
        ]
        indexes = [
            models.Index(fields=["agent", "id"]),
            models.Index(fields=["conversation", "id"]),
            models.Index(
                fields=["driver", "owner", "id"], condition=Q(status__in=["created", "running"]), name="run_active"
            ),
            models.Index(fields=["completed_at"], condition=Q(events_dropped=False), name="run_log_kept"),
            models.Index(fields=["id"], condition=Q(status="failed"), name="run_failed"),
        ]

    @property
    def active(self) -> bool:
        return self.status in ACTIVE


class StepStatus(models.TextChoices):
    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(Row):
    """One model call and its tool calls. ``message_uuid`` names the answer before it exists."""

    PREFIX = "step"

    run = models.ForeignKey(Run, models.CASCADE, related_name="steps", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField(default=0, help_text="from 0 within its run")
    status = models.CharField(max_length=16, choices=StepStatus.choices, default=StepStatus.PENDING)
    attempt = models.PositiveIntegerField(default=1)
    message_uuid = models.UUIDField(default=uuid.uuid4)
    superseded = models.JSONField(default=list)
    provider = models.CharField(max_length=32, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    context_window = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    cache_write_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0)
    stop_reason = models.CharField(max_length=50, null=True, blank=True)
    request_id = models.CharField(max_length=200, blank=True, default="")
    error_type = models.CharField(max_length=50, null=True, blank=True)
    error_data = models.JSONField(null=True, blank=True)
    tags = models.JSONField(default=list, blank=True)
    feedback = models.CharField(max_length=16, null=True, blank=True)
    first_seq = models.PositiveBigIntegerField(default=0, help_text="number of its first event in the log")
    asked_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="step_number_once")]
        indexes = [
            models.Index(fields=["agent", "id"]),
            models.Index(fields=["id"], condition=Q(attempt__gt=1), name="step_retried"),
            models.Index(fields=["id"], condition=Q(feedback__isnull=False), name="step_rated"),
        ]
