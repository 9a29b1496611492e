"""What requests about conversations may hold."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.serializers.agents import CompactionSettings, ModelSettings

MAX_TEXT = 100_000  # characters of a summary or a description


class ConversationFields(serializers.Serializer[Any]):
    """What creating and changing a conversation have in common; unknown fields are ignored."""

    summary = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=MAX_TEXT, trim_whitespace=False
    )
    description = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=MAX_TEXT, trim_whitespace=False
    )
    model = serializers.CharField(required=False, allow_null=True, max_length=200)
    model_settings = ModelSettings(required=False, allow_null=True)
    context_window_limit = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=100_000_000)


class ConversationCreate(ConversationFields):
    """The body of POST /v1/conversations/; ``agent_id`` may also stand in the query."""

    agent_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    hidden = serializers.BooleanField(required=False, allow_null=True)


class ConversationUpdate(ConversationFields):
    """The body of PATCH /v1/conversations/{id}; a null clears a field."""

    archived = serializers.BooleanField(required=False, allow_null=True)
    last_message_at = serializers.DateTimeField(required=False, allow_null=True)


class Compaction(serializers.Serializer[Any]):
    """The body of the compact and summarize routes; settings that are left out are the agent's own."""

    agent_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    compaction_settings = CompactionSettings(required=False, allow_null=True)


class Cancel(serializers.Serializer[Any]):
    """The body of POST /v1/agents/{id}/messages/cancel; without ids everything of the agent is cancelled."""

    run_ids = serializers.ListField(
        child=serializers.CharField(max_length=100), required=False, allow_null=True, max_length=1000
    )
