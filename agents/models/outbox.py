"""What must leave after a commit."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from agents.models.run import Run
from tools.models import Row


class OutboxItem(Row):
    """A signed HTTP call to somebody else, retried until it is delivered or a day old."""

    PREFIX = "outbox"

    kind = models.CharField(max_length=32)
    url = models.TextField()
    payload = models.TextField()
    run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="+")
    job = models.UUIDField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    status_code = models.PositiveIntegerField(null=True, blank=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=Q(delivered_at__isnull=True, failed_at__isnull=True),
                name="outbox_due",
            )
        ]
