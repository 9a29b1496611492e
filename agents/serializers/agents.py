"""What a request about agents may hold. Unknown fields are ignored; null means "not set"."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from rest_framework import serializers

from agents.serializers.blocks import CreateBlock

AGENT_TYPES = (
    "memgpt_agent",
    "memgpt_v2_agent",
    "letta_v1_agent",
    "react_agent",
    "workflow_agent",
    "split_thread_agent",
    "sleeptime_agent",
    "voice_convo_agent",
    "voice_sleeptime_agent",
)
MAX_TOKENS = 100_000_000


def optional_text(max_length: int = 200, **kwargs: Any) -> serializers.CharField:
    return serializers.CharField(max_length=max_length, required=False, allow_null=True, **kwargs)


def optional_texts(max_length: int = 200) -> serializers.ListField:
    child = serializers.CharField(max_length=max_length)
    return serializers.ListField(child=child, required=False, allow_null=True)


def optional_flag() -> serializers.BooleanField:
    return serializers.BooleanField(required=False, allow_null=True)


def optional_number(minimum: int = 0, maximum: int = MAX_TOKENS) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=minimum, max_value=maximum, required=False, allow_null=True)


def optional_list(child: serializers.Serializer[Any]) -> serializers.ListSerializer[Any]:
    """A list of objects; ``many=True`` would let null through as an element, too."""
    return serializers.ListSerializer(child=child, required=False, allow_null=True)


def variables() -> serializers.DictField:
    child = serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=100_000)
    return serializers.DictField(child=child, required=False, allow_null=True)


class Kept(serializers.Serializer[Any]):
    """An object of which the fields that are named are checked; all others are kept as they came."""

    def to_internal_value(self, data: Any) -> Any:
        checked = super().to_internal_value(data)
        return {**data, **checked}


class ResponseFormat(Kept):
    type = serializers.ChoiceField(("text", "json_schema", "json_object"), required=False)
    json_schema = serializers.DictField(required=False)

    def validate(self, attrs: Any) -> Any:
        if attrs.get("type") == "json_schema" and not attrs.get("json_schema"):
            raise serializers.ValidationError({"json_schema": "this type needs a schema"})
        return attrs


class CompactionSettings(Kept):
    model = optional_text()
    prompt = optional_text(100_000, allow_blank=True, trim_whitespace=False)
    prompt_acknowledgement = optional_flag()
    clip_chars = optional_number()
    mode = serializers.ChoiceField(
        ("all", "sliding_window", "self_compact_all", "self_compact_sliding_window"), required=False, allow_null=True
    )
    sliding_window_percentage = serializers.FloatField(min_value=0, max_value=1, required=False, allow_null=True)


class LlmConfig(Kept):
    """An llm_config."""

    model = serializers.CharField(max_length=150)
    handle = optional_text()
    provider_name = optional_text(50)
    model_endpoint_type = optional_text(50)
    context_window = optional_number(1)
    max_tokens = optional_number(1)
    temperature = serializers.FloatField(min_value=0, max_value=2, required=False, allow_null=True)
    enable_reasoner = optional_flag()
    max_reasoning_tokens = optional_number()
    reasoning_effort = optional_text(50)
    parallel_tool_calls = optional_flag()
    response_format = ResponseFormat(required=False, allow_null=True)


class ModelSettings(Kept):
    """model_settings of any provider."""

    provider_type = optional_text(50)
    max_output_tokens = optional_number(1)
    temperature = serializers.FloatField(min_value=0, max_value=2, required=False, allow_null=True)
    parallel_tool_calls = optional_flag()
    thinking = serializers.DictField(required=False, allow_null=True)
    reasoning = serializers.DictField(required=False, allow_null=True)
    response_format = ResponseFormat(required=False, allow_null=True)


class AgentFields(serializers.Serializer[Any]):
    """What creating and changing an agent have in common."""

    name = serializers.CharField(max_length=200, required=False, allow_null=True)
    tool_ids = optional_texts()
    source_ids = optional_texts()
    folder_ids = optional_texts()
    block_ids = optional_texts()
    tags = optional_texts()
    system = optional_text(1_000_000, allow_blank=True, trim_whitespace=False)
    tool_rules = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True)
    description = optional_text(100_000, allow_blank=True)
    metadata = serializers.DictField(required=False, allow_null=True)
    tool_exec_environment_variables = variables()
    secrets = variables()
    project_id = optional_text(100)
    template_id = optional_text(100)
    base_template_id = optional_text(100)
    identity_ids = optional_texts()
    message_buffer_autoclear = optional_flag()
    model = optional_text(allow_blank=True)
    embedding = optional_text(allow_blank=True)
    model_settings = ModelSettings(required=False, allow_null=True)
    compaction_settings = CompactionSettings(required=False, allow_null=True)
    context_window_limit = optional_number(1)
    reasoning = optional_flag()
    llm_config = LlmConfig(required=False, allow_null=True)
    embedding_config = serializers.DictField(required=False, allow_null=True)
    parallel_tool_calls = optional_flag()
    response_format = ResponseFormat(required=False, allow_null=True)
    max_tokens = optional_number(1)
    enable_sleeptime = optional_flag()
    timezone = optional_text(64)
    max_files_open = optional_number(maximum=2**31 - 1)
    per_file_view_window_char_limit = optional_number(maximum=2**31 - 1)
    hidden = optional_flag()

    def validate_timezone(self, value: str | None) -> str | None:
        try:
            return value and ZoneInfo(value).key
        except (KeyError, ValueError, OSError):
            raise serializers.ValidationError(f"'{value}' is not a time zone") from None


class FirstMessage(serializers.Serializer[Any]):
    """One of the messages that an agent's conversation begins with: its role and its text."""

    role = serializers.ChoiceField(choices=["user", "assistant"])
    content = serializers.JSONField()

    def validate_content(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        parts = value if isinstance(value, list) else []
        if not parts or not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
            raise serializers.ValidationError("expected a text or a list of text parts")
        return "\n".join(part["text"] for part in parts)


class CreateAgent(AgentFields):
    """The body of POST /v1/agents/."""

    memory_blocks = optional_list(CreateBlock())
    tools = optional_texts()
    agent_type = serializers.ChoiceField(choices=AGENT_TYPES, required=False, allow_null=True)
    initial_message_sequence = optional_list(FirstMessage())
    include_base_tools = optional_flag()
    include_multi_agent_tools = optional_flag()
    include_base_tool_rules = optional_flag()
    include_default_source = optional_flag()
    embedding_chunk_size = optional_number(1, 2**31 - 1)
    max_reasoning_tokens = optional_number()
    enable_reasoner = optional_flag()
    from_template = optional_text()
    template = optional_flag()
    project = optional_text()
    memory_variables = variables()


class UpdateAgent(AgentFields):
    """The body of PATCH /v1/agents/{id}."""

    message_ids = optional_texts()
    last_run_completion = serializers.DateTimeField(required=False, allow_null=True)
    last_run_duration_ms = optional_number(maximum=2**53)
    last_stop_reason = optional_text(50)


class ApprovalToggle(serializers.Serializer[Any]):
    """Whether a tool asks before it runs; in the body or, from older clients, in the query."""

    requires_approval = serializers.BooleanField(required=False, allow_null=True, default=None)


class ToolArguments(serializers.Serializer[Any]):
    """The body of POST /v1/agents/{id}/tools/{name}/run."""

    args = serializers.DictField(required=False, allow_null=True)


class ResetMessages(serializers.Serializer[Any]):
    """Whether the first messages of the agent's kind come back after a reset."""

    add_default_initial_messages = serializers.BooleanField(required=False, allow_null=True, default=None)
