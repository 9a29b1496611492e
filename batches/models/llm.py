"""LLM batches: one batch at one provider each, or one group of live calls."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from batches.models.job import BatchJob
from tools.models import Row


class LLMState(models.TextChoices):
    """preparing: its file is being written. created: the file is whole. submitting: the intent to send is stored.

    unknown: it may or may not exist at the provider.
    """

    PREPARING = "preparing"
    CREATED = "created"
    SUBMITTING = "submitting"
    UNKNOWN = "unknown"
    RUNNING = "running"
    DOWNLOADING = "downloading"
    STEPPING = "stepping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_LLM = (
    LLMState.PREPARING,
    LLMState.CREATED,
    LLMState.SUBMITTING,
    LLMState.UNKNOWN,
    LLMState.RUNNING,
    LLMState.DOWNLOADING,
    LLMState.STEPPING,
)


class LLMBatch(Row):
    """One wave of a job at one provider. ``count``, ``size`` and ``digest`` describe its file of JSON lines.

    ``submitted_at``: when the intent to send was stored. ``looks``: how often the provider was asked in vain
    for a batch whose create was not answered. ``next_at``: when to deal with it again. ``troubles``: failed
    attempts in a row at what it waits for.
    """

    PREFIX = "batch_req"

    job = models.ForeignKey(BatchJob, models.CASCADE, related_name="llm_batches")
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=200, blank=True, default="", help_text="where a file holds one model only")
    local = models.BooleanField(default=False, help_text="live calls in place of a provider's batch")
    status = models.CharField(max_length=16, choices=LLMState.choices, default=LLMState.PREPARING)
    count = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True, default="")
    provider_batch_id = models.CharField(max_length=200, blank=True, default="")
    adopted = models.BooleanField(default=False, help_text="found at the provider after its create was not answered")
    response = models.JSONField(null=True, blank=True, help_text="what the provider answered when it was created")
    polled = models.JSONField(null=True, blank=True, help_text="what the provider said last")
    last_polled_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    looks = models.PositiveIntegerField(default=0)
    foreign_ids = models.JSONField(
        default=list, blank=True, help_text="provider batches that proved not to be this one"
    )
    next_at = models.DateTimeField(null=True, blank=True)
    troubles = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    downloads = models.PositiveIntegerField(default=0)
    cancel_sent = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "provider_batch_id"],
                condition=~Q(provider_batch_id=""),
                name="provider_batch_once",
            )
        ]
        indexes = [
            models.Index(fields=["job", "id"]),
            models.Index(
                fields=["job", "status"],
                condition=~Q(status__in=["completed", "failed", "cancelled"]),
                name="llm_batch_open",
            ),
        ]

    def __str__(self) -> str:
        return self.wire_id
