"""What requests about steps may hold."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class Feedback(serializers.Serializer[Any]):
    """The body of PATCH /v1/steps/{id}/feedback; a null ``feedback`` takes it back."""

    feedback = serializers.ChoiceField(choices=["positive", "negative"], allow_null=True, required=False)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, allow_null=True, max_length=100
    )
