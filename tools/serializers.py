"""What a request about tools may hold."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

MAX_SOURCE = 1_000_000  # characters of a tool's source


class Requirement(serializers.Serializer[Any]):
    """A package of pip or npm."""

    name = serializers.CharField(max_length=200)
    version = serializers.CharField(max_length=100, allow_null=True, required=False)


def requirements() -> serializers.ListSerializer[Any]:
    """A list of packages; ``many=True`` would let null through as an element, too."""
    return serializers.ListSerializer(child=Requirement(), required=False, allow_null=True)


class ToolFields(serializers.Serializer[Any]):
    """What creating and changing a tool have in common; null means "not set"."""

    description = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=100_000, trim_whitespace=False
    )
    tags = serializers.ListField(child=serializers.CharField(max_length=200), required=False, allow_null=True)
    source_type = serializers.ChoiceField(choices=["python", "typescript", "json"], required=False, allow_null=True)
    json_schema = serializers.DictField(required=False, allow_null=True)
    args_json_schema = serializers.DictField(required=False, allow_null=True)
    return_char_limit = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False, allow_null=True)
    pip_requirements = requirements()
    npm_requirements = requirements()
    default_requires_approval = serializers.BooleanField(required=False, allow_null=True)
    enable_parallel_execution = serializers.BooleanField(required=False, allow_null=True)


class ToolCreate(ToolFields):
    """The body of POST and PUT /v1/tools/."""

    source_code = serializers.CharField(allow_blank=True, max_length=MAX_SOURCE, trim_whitespace=False)


class ToolUpdate(ToolFields):
    """The body of PATCH /v1/tools/{id}."""

    source_code = serializers.CharField(
        allow_blank=True, max_length=MAX_SOURCE, trim_whitespace=False, required=False, allow_null=True
    )
    metadata_ = serializers.DictField(required=False, allow_null=True)
    metadata = serializers.DictField(required=False, allow_null=True)


class ToolRun(serializers.Serializer[Any]):
    """The body of POST /v1/tools/run: a source and the arguments to call it with, nothing is stored."""

    source_code = serializers.CharField(allow_blank=True, max_length=MAX_SOURCE, trim_whitespace=False)
    args = serializers.DictField()
    env_vars = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, allow_null=True)
    name = serializers.CharField(required=False, allow_null=True, max_length=64)
    source_type = serializers.CharField(required=False, allow_null=True)
    args_json_schema = serializers.DictField(required=False, allow_null=True)
    json_schema = serializers.DictField(required=False, allow_null=True)
    pip_requirements = requirements()
    npm_requirements = requirements()


class SchemaRequest(serializers.Serializer[Any]):
    """The body of POST /v1/tools/generate-schema."""

    code = serializers.CharField(allow_blank=True, max_length=MAX_SOURCE, trim_whitespace=False)
    source_type = serializers.ChoiceField(choices=["python", "typescript"], required=False, allow_null=True)


class ToolSearch(serializers.Serializer[Any]):
    """The body of POST /v1/tools/search. Nothing is embedded: every mode is a text search."""

    query = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=1000)
    search_mode = serializers.ChoiceField(choices=["vector", "fts", "hybrid"], required=False, allow_null=True)
    tool_types = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    limit = serializers.IntegerField(min_value=0, max_value=1000, required=False, default=50)
