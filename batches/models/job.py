"""Jobs: many agents at once; and the lease of the one who polls."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from tools.models import Row


class Spent(models.Model):
    """Tokens, and money where the settings price a model. ``unpriced`` counts the calls without a price."""

    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=18, decimal_places=9, default=0)
    unpriced = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class JobStatus(models.TextChoices):
    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


OPEN_JOBS = (JobStatus.CREATED, JobStatus.RUNNING)


class Phase(models.TextChoices):
    """What a running job does, for people; nothing decides on it."""

    NONE = "", "not running"
    PREPARING = "preparing"
    WAITING_PROVIDER = "waiting_provider"
    INGESTING = "ingesting"
    STEPPING = "stepping"
    AWAITING_APPROVAL = "awaiting_approval"
    PAUSED = "paused"
    CANCELLING = "cancelling"


class BatchJob(Row, Spent):
    """A batch of agents. Created while its members are being stored, running from then on.

    ``paused_at``: nothing new is sent; ``pause_reason`` is for an operator to act on. ``cancelled_at``: nothing
    new is sent and no tool runs. ``deleted_at``: out of every list; the row goes when its work is over.
    """

    PREFIX = "job"

    status = models.CharField(max_length=16, choices=JobStatus.choices, default=JobStatus.CREATED)
    phase = models.CharField(max_length=20, choices=Phase.choices, default=Phase.NONE, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_kind = models.CharField(max_length=32, blank=True, default="")
    pause_reason = models.TextField(blank=True, default="")
    send_after = models.DateTimeField(null=True, blank=True, help_text="a provider's quota is used up until then")
    cancelled_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    total = models.PositiveIntegerField(default=0, help_text="agents in the job, one counted as often as it is named")
    retry_max = models.PositiveSmallIntegerField(default=0, help_text="retries of a request whose failure passes")
    callback_url = models.TextField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    error = models.JSONField(null=True, blank=True, help_text="type, message")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["id"], condition=Q(status__in=["created", "running"]), name="job_open")]

    def __str__(self) -> str:
        return self.wire_id


class PollerLease(models.Model):
    """The one row that says who polls. ``wanted``: somebody has new work since the poller last began a cycle."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    owner = models.UUIDField(null=True, blank=True)
    host = models.CharField(max_length=255, blank=True, default="")
    boot_id = models.CharField(max_length=64, blank=True, default="")
    pid = models.PositiveIntegerField(default=0)
    beat_at = models.DateTimeField(null=True, blank=True)
    wanted = models.BooleanField(default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_poller_lease")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
