"""The app of agents: after every migration it makes sure of groups, the system user and the schedules."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AgentsConfig(AppConfig):
    name = "agents"

    def ready(self) -> None:
        post_migrate.connect(_ensure_rows, sender=self)


def _ensure_rows(*, using: str, **_kwargs: Any) -> None:
    from agents.policies.groups import ensure_groups

    ensure_groups(using=using)
