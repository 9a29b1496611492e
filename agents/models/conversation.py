"""Threads of messages. A conversation is the lock of its own course."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from tools.models import Row


class Conversation(Row):
    """A thread of messages of an agent; exactly one of an agent's conversations is its default."""

    PREFIX = "conv"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="conversations")
    is_default = models.BooleanField(default=False)
    summary = models.TextField(null=True, blank=True)
    description = models.TextField(null=True, blank=True)
    model = models.CharField(max_length=200, null=True, blank=True)
    model_settings = models.JSONField(null=True, blank=True)
    context_window_limit = models.PositiveIntegerField(null=True, blank=True)
    hidden = models.BooleanField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    last_message_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent"], condition=Q(is_default=True), name="one_default_conversation")
        ]
        indexes = [
            models.Index(fields=["agent", "id"]),
            models.Index(fields=["agent", "last_message_at", "id"]),
            models.Index(fields=["last_message_at", "id"]),
        ]

    @property
    def wire_name(self) -> str | None:
        """What the wire calls it: null for an agent's default conversation."""
        return None if self.is_default else self.wire_id


class MessageRole(models.TextChoices):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    APPROVAL = "approval"
    SUMMARY = "summary"


class MessageContext(models.IntegerChoices):
    """Whether the model sees a message: no, yes and counted, or yes beside the message after it."""

    OUT = 0
    IN = 1
    ATTACHED = 2


class Message(Row):
    """What was said: ordered ``parts``, frozen once stored (a system message follows its blocks).

    Parts by ``type``: text {text}; image {media_type, data, url}; reasoning {text, signature, provider};
    redacted {data, provider}; call {id, name, arguments, gated}; result {id, name, status, text, content,
    stdout, stderr}; decision (an approval as it was sent, under ``sent``).
    """

    PREFIX = "message"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey("agents.Run", models.SET_NULL, null=True, blank=True, related_name="messages")
    step = models.ForeignKey("agents.Step", models.SET_NULL, null=True, blank=True, related_name="messages")
    role = models.CharField(max_length=16, choices=MessageRole.choices)
    parts = models.JSONField(default=list)
    context = models.PositiveSmallIntegerField(choices=MessageContext.choices, default=MessageContext.IN)
    created_at = models.DateTimeField()
    otid = models.CharField(max_length=200, null=True, blank=True)
    name = models.CharField(max_length=200, null=True, blank=True)
    sender_id = models.CharField(max_length=200, null=True, blank=True)
    group_id = models.CharField(max_length=200, null=True, blank=True)
    model = models.CharField(max_length=200, null=True, blank=True)
    is_err = models.BooleanField(null=True, blank=True)
    mark = models.CharField(max_length=16, blank=True, default="", help_text='"cancelled", "aborted" or ""')
    approval_request_id = models.CharField(max_length=300, null=True, blank=True)
    batch_item = models.UUIDField(null=True, blank=True, db_index=True)
    superseded = models.JSONField(default=list, blank=True, help_text="uuids of earlier attempts at this message")
    tokens = models.PositiveIntegerField(default=0, help_text="local estimate")
    search_text = models.TextField(blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["conversation", "id"]),
            models.Index(fields=["agent", "id"]),
            models.Index(fields=["conversation", "id"], condition=Q(context__gt=0), name="message_in_context"),
        ]
