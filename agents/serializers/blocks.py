"""What a request about memory blocks may hold."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

MAX_LIMIT = 10_000_000  # characters


class BlockFields(serializers.Serializer[Any]):
    """What creating and changing a block have in common; null means "not set"."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, required=False, allow_null=True)
    project_id = serializers.CharField(max_length=100, required=False, allow_null=True)
    name = serializers.CharField(max_length=200, required=False, allow_null=True)
    is_template = serializers.BooleanField(required=False, allow_null=True)
    template_name = serializers.CharField(max_length=200, required=False, allow_null=True)
    template_id = serializers.CharField(max_length=200, required=False, allow_null=True)
    base_template_id = serializers.CharField(max_length=200, required=False, allow_null=True)
    deployment_id = serializers.CharField(max_length=200, required=False, allow_null=True)
    entity_id = serializers.CharField(max_length=200, required=False, allow_null=True)
    preserve_on_migration = serializers.BooleanField(required=False, allow_null=True)
    read_only = serializers.BooleanField(required=False, allow_null=True)  # type: ignore[assignment]
    description = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=100_000, trim_whitespace=False
    )
    metadata = serializers.DictField(required=False, allow_null=True)
    hidden = serializers.BooleanField(required=False, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField(max_length=200), required=False, allow_null=True)


class CreateBlock(BlockFields):
    """The body of POST /v1/blocks/ and an element of an agent's ``memory_blocks``."""

    label = serializers.CharField(max_length=200)  # type: ignore[assignment]
    value = serializers.CharField(allow_blank=True, trim_whitespace=False)


class BlockUpdate(BlockFields):
    """The body of PATCH of a block."""

    label = serializers.CharField(max_length=200, required=False, allow_null=True)  # type: ignore[assignment]
    value = serializers.CharField(allow_blank=True, trim_whitespace=False, required=False, allow_null=True)
