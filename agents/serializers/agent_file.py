"""What a file of agents may hold, and the form that comes with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from agents.serializers.agents import CreateAgent, optional_list, optional_text
from agents.serializers.blocks import CreateBlock
from lettaweb.lib.json import BadJson, loads
from tools.serializers import ToolCreate


class FileForm(serializers.Serializer[Any]):
    """The form fields of POST /v1/agents/import beside the file; older and newer names of the same."""

    append_copy_suffix = serializers.BooleanField(required=False, default=True)
    override_existing_tools = serializers.BooleanField(required=False, default=True)
    override_embedding_handle = optional_text(allow_blank=True)
    embedding = optional_text(allow_blank=True)
    override_model_handle = optional_text(allow_blank=True)
    model = optional_text(allow_blank=True)
    override_name = optional_text(allow_blank=True)
    name = optional_text(allow_blank=True)
    project_id = optional_text(100, allow_blank=True)
    strip_messages = serializers.BooleanField(required=False, default=False)
    env_vars_json = optional_text(1_000_000, allow_blank=True)
    secrets = optional_text(1_000_000, allow_blank=True)

    def validate_env_vars_json(self, value: str | None) -> dict[str, str]:
        try:
            found = loads((value or "{}").encode())
        except BadJson as error:
            raise serializers.ValidationError(str(error)) from None
        if not isinstance(found, Mapping) or not all(isinstance(item, str) for item in found.values()):
            raise serializers.ValidationError("expected a JSON object of texts")
        return dict(found)

    validate_secrets = validate_env_vars_json


class FileTool(ToolCreate):
    """A tool of a file; built-in ones come without a source."""

    id = serializers.CharField(max_length=200)
    name = serializers.CharField(max_length=200)
    tool_type = serializers.CharField(required=False, allow_null=True, max_length=50)
    source_code = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=1_000_000, trim_whitespace=False
    )
    source_type = serializers.CharField(required=False, allow_null=True, max_length=50)  # type: ignore[assignment]


class FileBlock(CreateBlock):
    """A memory block of a file."""

    id = serializers.CharField(max_length=200)


class FileMessage(serializers.Serializer[Any]):
    """A message of a file; what it holds is read where it is stored."""

    id = serializers.CharField(max_length=200)
    role = serializers.ChoiceField(choices=["system", "user", "assistant", "tool", "function", "approval", "summary"])
    created_at = serializers.DateTimeField(required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        checked = super().to_internal_value(data)
        return {**data, **checked}


class FileAgent(CreateAgent):
    """An agent of a file: what creates it, and its history."""

    in_context_message_ids = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    messages = optional_list(FileMessage())


class AgentFile(serializers.Serializer[Any]):
    """A whole file."""

    agents = FileAgent(many=True, allow_empty=False)
    tools = optional_list(FileTool())
    blocks = optional_list(FileBlock())
