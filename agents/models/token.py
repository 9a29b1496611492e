"""What an API token is for. Knox keeps the token itself: its hash, its user and its end."""

from __future__ import annotations

from django.db import models


class TokenName(models.Model):
    """The name that a person gave a token."""

    token = models.OneToOneField("knox.AuthToken", models.CASCADE, primary_key=True, related_name="named")
    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name
