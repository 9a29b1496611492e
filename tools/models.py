"""Rows of tools: what a tool is, never how it runs."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, Self

from django.db import models
from django.db.models.base import ModelState


class Stored(models.Model):
    """A row that is read as it is stored: of what making a new one takes, nothing is done for it."""

    class Meta:
        abstract = True

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], *, fetch_mode: Any = None
    ) -> Self:
        row = cls.__new__(cls)
        row.__dict__.update(zip(field_names, values, strict=True))
        row._state = ModelState()
        row._state.adding, row._state.db = False, db
        if fetch_mode is not None:  # later versions of Django say how to read what is not here
            row._state.fetch_mode = fetch_mode
        return row


class Row(Stored):
    """A row with a bigint that orders it and a uuid that names it on the wire (``prefix-uuid``)."""

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    PREFIX = ""

    class Meta:
        abstract = True

    @property
    def wire_id(self) -> str:
        return f"{self.PREFIX}-{self.uuid}"


class ToolType(models.TextChoices):
    CUSTOM = "custom"
    LETTA_CORE = "letta_core"
    LETTA_MEMORY_CORE = "letta_memory_core"


class Risk(models.TextChoices):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ExpireAction(models.TextChoices):
    DENY = "deny"
    PAUSE = "pause"


class OnInterrupt(models.TextChoices):
    """What becomes of a call that had started when its process died; "" = ask if gated, else tell."""

    DEFAULT = "", "ask when gated, else tell"
    ASK = "ask"
    TELL = "tell"
    RERUN = "rerun"


class Tool(Row):
    """A tool: its JSON schema, its source (custom tools) and how people want it treated."""

    PREFIX = "tool"

    name = models.CharField(max_length=64, unique=True)
    tool_type = models.CharField(max_length=32, choices=ToolType.choices, default=ToolType.CUSTOM)
    description = models.TextField(blank=True, default="")
    source_type = models.CharField(max_length=16, default="python")
    source_code = models.TextField(blank=True, default="")
    json_schema = models.JSONField(default=dict)
    args_json_schema = models.JSONField(default=dict, blank=True)
    tags = models.JSONField(default=list, blank=True)
    return_char_limit = models.PositiveIntegerField(default=50_000)
    pip_requirements = models.JSONField(null=True, blank=True)
    npm_requirements = models.JSONField(null=True, blank=True)
    default_requires_approval = models.BooleanField(null=True, blank=True)
    enable_parallel_execution = models.BooleanField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    project_id = models.CharField(max_length=100, null=True, blank=True)

    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.MEDIUM)
    expires_after = models.PositiveIntegerField(null=True, blank=True, help_text="minutes; empty: never")
    expire_action = models.CharField(max_length=8, choices=ExpireAction.choices, default=ExpireAction.DENY)
    on_interrupt = models.CharField(max_length=8, choices=OnInterrupt.choices, default=OnInterrupt.DEFAULT, blank=True)
    network_hosts = models.JSONField(default=list, blank=True, help_text="host names that the tool may reach")
    secret_fields = models.JSONField(default=list, blank=True, help_text="arguments to mask on screens")

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name
