"""Configured agents, their memory blocks, tags, tools and secrets."""

from __future__ import annotations

import uuid

from django.db import models

from tools.models import Row, Tool


class Block(Row):
    """Editable memory. ``version`` rises with every write: tools save by compare-and-set."""

    PREFIX = "block"

    label = models.CharField(max_length=200)
    value = models.TextField(blank=True, default="")
    limit = models.PositiveIntegerField(default=100_000, help_text="characters")
    description = models.TextField(null=True, blank=True)
    read_only = models.BooleanField(default=False)
    metadata = models.JSONField(default=dict, blank=True, null=True)
    tags = models.JSONField(default=list, blank=True)
    hidden = models.BooleanField(null=True, blank=True)
    is_template = models.BooleanField(default=False)
    name = models.CharField(max_length=200, null=True, blank=True)
    project_id = models.CharField(max_length=100, null=True, blank=True)
    extra = models.JSONField(default=dict, blank=True, help_text="template, deployment and entity ids as sent")
    version = models.PositiveBigIntegerField(default=1)

    class Meta:
        indexes = [models.Index(fields=["label"])]

    def __str__(self) -> str:
        return self.label


class Agent(Row):
    """A configured agent. ``extra`` keeps accepted fields that nothing here acts on."""

    PREFIX = "agent"

    name = models.CharField(max_length=200, db_index=True)
    agent_type = models.CharField(max_length=32, default="letta_v1_agent")
    description = models.TextField(null=True, blank=True)
    system = models.TextField(blank=True, default="")
    model = models.CharField(max_length=200, help_text="handle: provider/model")
    llm_config = models.JSONField(default=dict)
    model_settings = models.JSONField(default=dict, blank=True)
    embedding = models.CharField(max_length=200, null=True, blank=True)
    embedding_config = models.JSONField(null=True, blank=True)
    compaction_settings = models.JSONField(null=True, blank=True)
    response_format = models.JSONField(null=True, blank=True)
    tool_rules = models.JSONField(default=list, blank=True)
    metadata = models.JSONField(null=True, blank=True)
    message_buffer_autoclear = models.BooleanField(default=False)
    timezone = models.CharField(max_length=64, default="UTC", null=True, blank=True)
    hidden = models.BooleanField(null=True, blank=True)
    project_id = models.CharField(max_length=100, null=True, blank=True)
    template_id = models.CharField(max_length=100, null=True, blank=True)
    base_template_id = models.CharField(max_length=100, null=True, blank=True)
    identity_ids = models.JSONField(default=list, blank=True)
    extra = models.JSONField(default=dict, blank=True)
    last_run_completion = models.DateTimeField(null=True, blank=True)
    last_run_duration_ms = models.PositiveBigIntegerField(null=True, blank=True)
    last_stop_reason = models.CharField(max_length=50, null=True, blank=True)
    tools: models.ManyToManyField[Tool, AgentTool] = models.ManyToManyField(
        Tool, through="AgentTool", related_name="agents"
    )
    blocks: models.ManyToManyField[Block, AgentBlock] = models.ManyToManyField(
        Block, through="AgentBlock", related_name="agents"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name


class AgentTool(models.Model):
    id = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey(Agent, models.CASCADE)
    tool = models.ForeignKey(Tool, models.CASCADE)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "tool"], name="agent_tool_once")]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.tool_id}"


class AgentBlock(models.Model):
    """A block attached to an agent; ``label`` repeats the block's so that it is unique per agent."""

    id = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey(Agent, models.CASCADE)
    block = models.ForeignKey(Block, models.CASCADE)
    label = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "block"], name="agent_block_once"),
            models.UniqueConstraint(fields=["agent", "label"], name="agent_block_label_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.label}"


class AgentTag(models.Model):
    id = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="tags")
    tag = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "tag"], name="agent_tag_once")]
        indexes = [models.Index(fields=["tag", "agent"])]

    def __str__(self) -> str:
        return self.tag


class AgentVariable(models.Model):
    """A secret of an agent, handed to its tools as an environment variable; stored encrypted."""

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="variables")
    key = models.CharField(max_length=200)
    value_enc = models.TextField()
    description = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "key"], name="agent_variable_once")]

    def __str__(self) -> str:
        return self.key
