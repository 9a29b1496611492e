"""What a search of messages may ask for. Nothing is embedded: every mode is a search of the text."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.models import MessageRole

MODES = ("vector", "fts", "hybrid")
MOST_FOUND = 1000


class Search(serializers.Serializer[Any]):
    """What both searches share. Dates are ISO 8601; ``limit`` counts stored messages."""

    search_mode = serializers.ChoiceField(choices=MODES, required=False, allow_null=True)
    limit = serializers.IntegerField(min_value=0, max_value=MOST_FOUND, required=False, default=50)
    start_date = serializers.DateTimeField(required=False, allow_null=True)
    end_date = serializers.DateTimeField(required=False, allow_null=True)


class MessageSearch(Search):
    """The body of POST /v1/messages/search."""

    query = serializers.CharField(allow_blank=True, max_length=10_000, trim_whitespace=False)
    agent_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    conversation_id = serializers.CharField(required=False, allow_null=True, max_length=100)


class AgentMessageSearch(Search):
    """The body of POST /v1/agents/messages/search; without a ``query`` the newest messages are found."""

    query = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=10_000, trim_whitespace=False
    )
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=[*MessageRole.values, "function"]), required=False, allow_null=True
    )
    project_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    template_id = serializers.CharField(required=False, allow_null=True, max_length=100)
