"""The app of agents: after every migration it makes sure of groups, the system user and the schedules."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate

NEEDED = {"auth_group", "auth_user", "django_q_schedule", "agents_toolcall"}


class AgentsConfig(AppConfig):
    name = "agents"

    def ready(self) -> None:
        from agents.actions.tools import follow_rename, forget_tool
        from agents.memory.register import register
        from agents.policies import known
        from tools.registry import on_deleted, on_renamed

        register()
        on_deleted(forget_tool)
        on_renamed(follow_rename)
        post_migrate.connect(_ensure_rows, dispatch_uid="agents.ensure_rows")
        known.watch()


def _ensure_rows(*, sender: AppConfig, using: str, **_kwargs: Any) -> None:
    # The signal comes once for each app: the last time every table is there.
    last = [config for config in apps.get_app_configs() if config.models_module is not None][-1]
    if sender is not last or not set(connections[using].introspection.table_names()) >= NEEDED:
        return
    from django.contrib.auth.management import create_permissions

    from agents.policies.groups import ensure_groups

    # This app stands before auth: the permissions of the last app may not be made yet.
    create_permissions(sender, using=using, verbosity=0, interactive=False)
    ensure_groups(using=using)
