"""The log of a run. Only ``agents.events`` reads and writes it."""

from __future__ import annotations

from django.db import models

from agents.models.run import Run


class EventSegment(models.Model):
    """Consecutive events of a run: ``data`` is a JSON list, its first element has number ``first_seq``.

    Segments of a run tile 1..last: ``first_seq`` is the last number before it plus one. ``head`` (JSON)
    is what the deltas among them share: the message and step that they belong to.
    """

    pk = models.CompositePrimaryKey("run_id", "first_seq")
    run = models.ForeignKey(Run, models.CASCADE, related_name="+", db_index=False)
    first_seq = models.PositiveBigIntegerField()
    last_seq = models.PositiveBigIntegerField()
    epoch = models.PositiveIntegerField()
    head = models.TextField(blank=True, default="")
    data = models.TextField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.run_id}: {self.first_seq} to {self.last_seq}"
